"""Means, segments, differences between systems, and what they say in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from searcheval.dataset import Dataset
from searcheval.metrics import answerable, overlap
from searcheval.settings import ACCEPTED
from searcheval.text import isolate

# Differences this small are rounding, not ranking.
EQUAL = 1e-9


def means(scores: Mapping[str, pd.DataFrame], keep: pd.DataFrame | pd.Series | None = None) -> pd.DataFrame:
    """Mean of each measure over the queries on which it is defined.

    Parameters
    ----------
    scores : dict of DataFrame
        From :func:`searcheval.evaluate`: index ``query_id``, a column a measure.
    keep : DataFrame or Series of bool, optional
        Which queries to take the mean over, by measure or for all measures.

    Returns
    -------
    DataFrame
        Index ``system``, a column a measure; NaN for a system that was not run.

    Examples
    --------
    >>> scores = {"s": pd.DataFrame({"RR": [1.0, 0.0, np.nan]}, index=["a", "b", "c"])}
    >>> means(scores)["RR"].tolist()
    [0.5]
    """
    rows = {}
    for name, frame in scores.items():
        chosen = frame if keep is None else frame.where(keep) if isinstance(keep, pd.DataFrame) else frame[keep]
        rows[name] = chosen.mean()
    return pd.DataFrame(rows).T.rename_axis("system")


def by_segment(scores: Mapping[str, pd.DataFrame], segment: pd.Series, measure: str) -> pd.DataFrame:
    """Mean of one measure in each segment.

    Parameters
    ----------
    scores : dict of DataFrame
    segment : Series
        Segment of each query, index ``query_id`` (see `Dataset.segment`).
    measure : str
        A canonical measure name.

    Returns
    -------
    DataFrame
        Index ``system``, a column a segment, in order of first appearance.
    """
    columns = {
        value: {name: frame.loc[frame.index.isin(group.index), measure].mean() for name, frame in scores.items()}
        for value, group in segment.groupby(segment, sort=False)
    }
    return pd.DataFrame(columns).reindex(list(scores)).rename_axis("system")


def differences(scores: Mapping[str, pd.DataFrame], system: str, baseline: str, measure: str) -> pd.Series:
    """``system`` minus ``baseline`` on each query where both are defined; index ``query_id``.

    Raises
    ------
    KeyError
        For a system or measure that was not scored.
    """
    return (scores[system][measure] - scores[baseline][measure]).dropna().rename(f"{system} − {baseline}")


@dataclass(frozen=True)
class Tally:
    """A comparison of two systems on one measure, without a claim about other queries."""

    system: str
    baseline: str
    measure: str
    n: int
    diff: float
    win: int
    tie: int
    loss: int


def tally(scores: Mapping[str, pd.DataFrame], system: str, baseline: str, measure: str) -> Tally:
    """Mean difference with the number of queries won, tied and lost."""
    diff = differences(scores, system, baseline, measure)
    win, loss = int((diff > EQUAL).sum()), int((diff < -EQUAL).sum())
    mean = float(diff.mean()) if len(diff) else float("nan")
    return Tally(system, baseline, measure, len(diff), mean, win, len(diff) - win - loss, loss)


def worst_queries(
    ds: Dataset,
    scores: Mapping[str, pd.DataFrame],
    runs: Mapping[str, pd.DataFrame],
    labels: pd.DataFrame,
    system: str,
    *,
    measure: str | None = None,
    n: int = 3,
    depth: int = 5,
) -> list[tuple[pd.Series, float, pd.DataFrame]]:
    """The queries on which a system does worst, with what it returned and what it should have.

    Returns
    -------
    list of (query, score, table)
        Lowest score first, perfect ones left out. The table has a row a rank: ``returned`` with its ``grade`` (NaN
        unlabelled), and ``ideal`` with its ``ideal_grade``: the relevant documents in the best order.
    """
    measure = measure or ds.primary
    column = scores[system][measure].dropna().sort_values(kind="stable")
    titles = (
        ds.documents.set_index("doc_id")["title"]
        if ds.documents is not None and "title" in ds.documents
        else pd.Series(dtype=str)
    )
    queries = ds.queries.set_index("query_id", drop=False)
    worst = []
    for query_id, score in column[column < 1 - EQUAL].head(n).items():
        judged = labels[labels["query_id"] == query_id].set_index("doc_id")["relevance"]
        ideal = judged[judged > 0].sort_values(ascending=False, kind="stable").head(depth)
        found = runs[system].query("query_id == @query_id").head(depth)["doc_id"].tolist()
        rows = max(len(ideal), len(found))
        table = pd.DataFrame(
            {
                "returned": _padded([titles.get(d, d) for d in found], rows),
                "grade": _padded([float(judged.get(d, np.nan)) for d in found], rows),
                "ideal": _padded([titles.get(d, d) for d in ideal.index], rows),
                "ideal_grade": _padded([float(g) for g in ideal], rows),
            },
            index=pd.RangeIndex(1, rows + 1, name="rank"),
        )
        worst.append((queries.loc[query_id], float(score), table))
    return worst


def findings(ds: Dataset, scores: Mapping[str, pd.DataFrame], labels: pd.DataFrame) -> list[str]:
    """What the numbers say, in sentences; whichever way they fall. Nothing here is a claim about other queries.

    Returns
    -------
    list of str
        Plain sentences: the order of the systems, each against the baseline and against its neighbour, the segments in
        which they part, abstention, and what caps the measures.
    """
    measure = ds.primary
    table = means(scores)
    ran = {n: f for n, f in scores.items() if not n.endswith(ACCEPTED) and f[measure].notna().any()}
    missing = [n for n in scores if n not in ran and not n.endswith(ACCEPTED)]
    said = [f"{isolate(name)} was not run: it has no score and takes part in no comparison." for name in missing]
    if not ran:
        return [*said, "No system was run, so nothing can be said."]
    order = table.loc[list(ran), measure].sort_values(ascending=False, kind="stable")
    ranking = ", ".join(f"{isolate(str(name))} {value:.3f}" for name, value in order.items())
    said.append(f"By mean {measure} over {len(ds.queries)} queries: {ranking}.")
    names = list(ran)
    pairs = [(b, a) for a, b in pairwise(names)]
    pairs += [
        (n, ds.baseline) for n in names if ds.baseline in ran and n != ds.baseline and (n, ds.baseline) not in pairs
    ]
    for system, base in pairs:
        if base is not None:
            said.append(_compared(tally(ran, system, base, measure)) + _where(ds, ran, system, base, measure))
    for column in ds.settings.segments:
        said += _parted(by_segment(ran, ds.segment(column), measure), column, measure)
    said += _abstention(ran)
    able = answerable(labels, ds.measures, queries=ds.queries)
    if "RR" in able and not able["RR"].all():
        none = int((~able["RR"]).sum())
        said.append(
            f"{none} of {len(able)} queries have nothing relevant: "
            f"no system can pass a mean RR of {able['RR'].mean():.3f} here."
        )
    return said


def _compared(t: Tally) -> str:
    system, baseline = isolate(t.system), isolate(t.baseline)
    if t.n == 0:
        return f"{system} and {baseline} share no query that both are scored on."
    if t.win == t.loss == 0:
        return f"{system} and {baseline} score the same on every query."
    word = "higher than" if t.diff > EQUAL else "lower than" if t.diff < -EQUAL else "level with"
    return (
        f"{system} is {word} {baseline} on {t.measure} by {abs(t.diff):.3f}: "
        f"better on {t.win}, worse on {t.loss}, equal on {t.tie} of {t.n} queries."
    )


def _where(ds: Dataset, ran: Mapping[str, pd.DataFrame], system: str, baseline: str, measure: str) -> str:
    """In which segments the two differ at all, if these are few."""
    diff = differences(ran, system, baseline, measure)
    differ = diff.index[diff.abs() > EQUAL]
    for column in ds.settings.segments:
        segment = ds.segment(column)
        inside = segment.reindex(differ).value_counts(sort=False)
        if 0 < len(inside) <= segment.nunique() / 2:
            places = ", ".join(
                f"{isolate(str(value))} ({n} of {int((segment == value).sum())})" for value, n in inside.items()
            )
            return f" They differ by {column} only on {places}."
    return ""


def _parted(table: pd.DataFrame, column: str, measure: str) -> list[str]:
    said = []
    for value in table.columns:
        scores = table[value].dropna()
        if len(scores) < 2 or scores.max() - scores.min() < 0.01:
            continue
        best, least = scores.idxmax(), scores.idxmin()
        said.append(
            f"{isolate(column)} {isolate(str(value))}: {measure} runs from {scores[least]:.3f} ({isolate(least)}) "
            f"to {scores[best]:.3f} ({isolate(best)})."
        )
    flat = [
        isolate(str(v)) for v in table.columns if table[v].dropna().agg(["max", "min"]).diff().abs().iloc[-1] < 0.01
    ]
    if flat and len(table) > 1:
        said.append(f"On {', '.join(flat)} the systems do not differ by 0.01 or more, so these cannot tell them apart.")
    return said


def _abstention(ran: Mapping[str, pd.DataFrame]) -> list[str]:
    said = []
    for name, frame in ran.items():
        if "Abstained" not in frame or not frame["Abstained"].notna().any():
            continue
        column = frame["Abstained"].dropna()
        said.append(
            f"{isolate(name)} rightly returns nothing on {int(column.sum())} of {len(column)} queries "
            "that have no answer."
        )
    return said


def _padded(values: Sequence[object], length: int) -> list[object]:
    missing: object = "" if values and isinstance(values[0], str) else np.nan
    return [*values, *[missing] * (length - len(values))]


def most_disputed(runs: Mapping[str, pd.DataFrame], queries: pd.DataFrame, *, k: int = 5) -> pd.Series:
    """How alike the systems' lists are on each query, least alike first.

    Parameters
    ----------
    runs : dict of DataFrame
        Accepted runs take no part.
    queries : DataFrame
        The set, with ``query_id``.
    k : int
        Depth of Jaccard's index, by which equal overlaps are told apart.

    Returns
    -------
    Series
        Mean rank-biased overlap over all pairs of systems, index ``query_id``. Queries that every system answers come
        before the others, so that there are lists to compare.

    Examples
    --------
    >>> a = pd.DataFrame({"query_id": ["q", "r"], "doc_id": ["x", "x"], "rank": [1, 1]})
    >>> b = pd.DataFrame({"query_id": ["q", "r"], "doc_id": ["x", "y"], "rank": [1, 1]})
    >>> most_disputed({"a": a, "b": b}, pd.DataFrame({"query_id": ["q", "r"]})).index.tolist()
    ['r', 'q']
    """
    present = {name: run for name, run in runs.items() if not name.endswith(ACCEPTED)}
    pairs = overlap(present, queries=queries, k=k)
    table = pairs.groupby("query_id", sort=False)[["rbo", "jaccard"]].mean()
    answered = [set(run["query_id"]) for run in present.values()]
    table["silent"] = [not all(q in held for held in answered) for q in table.index]
    return table.sort_values(["silent", "rbo", "jaccard"], kind="stable")["rbo"]
