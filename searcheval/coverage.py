"""How much of each result list is labelled at all. To be looked at before any score."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from searcheval.text import isolate


def coverage(
    labels: pd.DataFrame,
    runs: Mapping[str, pd.DataFrame],
    queries: pd.DataFrame,
    *,
    documents: pd.DataFrame | None = None,
    depth: int = 10,
) -> pd.DataFrame:
    """What stands behind each system's scores.

    Parameters
    ----------
    labels : DataFrame
        ``query_id, doc_id, relevance``.
    runs : dict of DataFrame
        Ranked lists by system.
    queries : DataFrame
        The set, with ``query_id``.
    documents : DataFrame, optional
        With ``doc_id``; without it no result can be unknown.
    depth : int
        How far down each list to look.

    Returns
    -------
    DataFrame
        Index ``system``; columns ``status``, ``queries`` in the set, ``answered`` (with at least one result),
        ``failed``, ``results`` within the depth, ``judged`` (their labelled share; NaN without results), ``unknown``
        (results that no document stands for), ``tied`` (neighbours with equal scores within the depth), ``ignored``
        (queries outside the set).

    Examples
    --------
    >>> labels = pd.DataFrame({"query_id": ["q"], "doc_id": ["a"], "relevance": [1]})
    >>> run = pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "rank": [1, 2], "score": [2.0, 1.0]})
    >>> coverage(labels, {"s": run}, labels)[["answered", "results", "judged"]].values.tolist()
    [[1.0, 2.0, 0.5]]
    """
    pairs = pd.MultiIndex.from_frame(labels[["query_id", "doc_id"]])
    known = None if documents is None else set(documents["doc_id"])
    ids = set(queries["query_id"])
    rows = []
    for name, run in runs.items():
        inside = run["query_id"].isin(ids)
        top = run[inside & (run["rank"] <= depth)]
        judged = pd.MultiIndex.from_frame(top[["query_id", "doc_id"]]).isin(pairs)
        rows.append(
            {
                "system": name,
                "status": run.attrs.get("status", "ok"),
                "queries": len(ids & set(run.attrs.get("asked", ids))),
                "answered": top["query_id"].nunique(),
                "failed": len(ids & set(run.attrs.get("failed", []))),
                "results": len(top),
                "judged": float(np.mean(judged)) if len(top) else np.nan,
                "unknown": 0 if known is None else int((~top["doc_id"].isin(known)).sum()),
                "tied": _tied(top),
                "ignored": run.loc[~inside, "query_id"].nunique(),
            }
        )
    columns = ["system", "status", "queries", "answered", "failed", "results", "judged", "unknown", "tied", "ignored"]
    return pd.DataFrame(rows, columns=columns).set_index("system")


def _tied(top: pd.DataFrame) -> int:
    score = top["score"].to_numpy().astype("float32")
    query = top["query_id"].to_numpy()
    return int(((score[1:] == score[:-1]) & (query[1:] == query[:-1])).sum())


def coverage_notes(table: pd.DataFrame, runs: Mapping[str, pd.DataFrame]) -> list[str]:
    """What the coverage table says, in sentences; worst things first.

    Parameters
    ----------
    table : DataFrame
        From :func:`coverage`.
    runs : dict of DataFrame
        The same runs; their ``attrs`` say why one is partial or was not run.

    Returns
    -------
    list of str
    """
    said = []
    for name, row in table.iterrows():
        attrs, name = runs[str(name)].attrs, isolate(str(name))
        if row["status"] != "ok":
            word = {"partial": "ran in part", "not_run": "was not run"}[str(row["status"])]
            said.append(f"{name} {word}: {attrs.get('reason')}.")
        if row["failed"]:
            said.append(f"{name} failed on {', '.join(attrs['failed'])}: those queries score 0.")
        silent = row["queries"] - row["answered"] - row["failed"]
        if row["status"] != "not_run" and silent:
            said.append(f"{name} returned nothing for {silent} of {row['queries']} queries; they stay in its mean.")
        if row["ignored"]:
            said.append(f"{name} holds {row['ignored']} queries outside the set; they are ignored.")
        if row["unknown"]:
            said.append(f"{name} returned {row['unknown']} results that no document stands for.")
    judged = table.loc[table["results"] > 0, "judged"]
    if len(judged) and (judged == 1).all():
        return [
            *said,
            "Every result looked at is labelled. A measure that looks deeper may still meet unlabelled ones.",
        ]
    said += [
        f"{1 - share:.0%} of {isolate(str(name))}'s results are unlabelled and count as irrelevant."
        for name, share in judged.items()
        if share < 1
    ]
    if len(judged) > 1 and judged.max() - judged.min() >= 0.05:
        said.append(
            f"The labelled share runs from {judged.min():.0%} ({isolate(judged.idxmin())}) "
            f"to {judged.max():.0%} ({isolate(judged.idxmax())}): "
            "a difference in score between these two may be a difference in labels."
        )
    return said
