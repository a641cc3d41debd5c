"""Scoring runs against judgments, query by query, under explicit conventions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from searcheval import schema
from searcheval.errors import InputError
from searcheval.metrics.coding import Coder
from searcheval.metrics.formulas import FORMULAS
from searcheval.metrics.names import Measure, parse_measure


@dataclass(frozen=True)
class Conventions:
    """What a formula leaves open. Cut-offs, gains and thresholds are in a measure's name instead.

    Parameters
    ----------
    no_relevant : {"perfect", "zero", "skip"}
        A judged query with nothing relevant: measures normalised by the relevant documents (nDCG, R, AP, RPrec, Bpref)
        are 1 there (there was nothing to get wrong; the default), or 0 (trec_eval), or the query is left out of the
        mean of every measure of relevance (NaN). RR, P, Success, F1, RBP and ERR are 0 there under the first two.
    judged_only : bool
        Remove unjudged results from the lists before scoring (*condensed lists*: Sakai 2007), except for Judged and
        NumRet.
    """

    no_relevant: Literal["perfect", "zero", "skip"] = "perfect"
    judged_only: bool = False


DEFAULT = Conventions()


def evaluate(
    qrels: pd.DataFrame | Mapping[str, Mapping[str, int]],
    run: pd.DataFrame | Mapping[str, pd.DataFrame],
    measures: str | Measure | Iterable[str | Measure],
    *,
    queries: pd.DataFrame | Iterable[str] | None = None,
    conventions: Conventions = DEFAULT,
) -> Any:  # DataFrame for a DataFrame, dict for a dict
    """Score one run, or several in one pass, query by query.

    Parameters
    ----------
    qrels : DataFrame or dict
        ``query_id, doc_id, relevance``, one row a judged pair; or ``{query_id: {doc_id: grade}}``.
    run : DataFrame, or dict of DataFrames by system name
        ``query_id, doc_id`` and ``rank`` (trusted) or ``score``. ``run.attrs["failed"]`` names queries on which the
        system raised: those score 0 on every measure. ``run.attrs["asked"]``, if there, names the queries that were put
        to it: on all others it has no score.
    measures : str, Measure, or several
    queries : DataFrame with ``query_id``, or ids; default the queries of the qrels
        The set that means are taken over. A query of the set that a run does not hold is an empty answer, kept in the
        mean; a query of the run that is not in the set is ignored.
    conventions : Conventions

    Returns
    -------
    DataFrame, or dict of DataFrames
        Index ``query_id`` in the order of the set, a column a measure. NaN where a query has no judgment at all, where
        Abstained does not apply, and throughout for a run without any result in the set (*not run*).
        ``attrs`` hold ``ignored`` (queries of the run outside the set) and ``unanswered`` (the reverse), as lists.

    Raises
    ------
    InputError
        For frames that are not runs or qrels, an unknown measure, the same document twice for a query.

    Examples
    --------
    >>> qrels = {"q": {"a": 3, "b": 1, "c": 0}}
    >>> run = schema.as_run({"q": {"b": 2.0, "a": 1.0}})
    >>> evaluate(qrels, run, ["nDCG@10", "RR"]).round(4).to_dict("list")
    {'nDCG@10': [0.7098], 'RR': [1.0]}
    """
    if isinstance(run, pd.DataFrame):
        return _evaluate(qrels, {"run": run}, measures, queries, conventions)["run"]
    return _evaluate(qrels, run, measures, queries, conventions)


@schema.lean_memory()
def _evaluate(
    qrels: pd.DataFrame | Mapping[str, Mapping[str, int]],
    runs: Mapping[str, pd.DataFrame],
    measures: str | Measure | Iterable[str | Measure],
    queries: pd.DataFrame | Iterable[str] | None,
    conventions: Conventions,
) -> dict[str, pd.DataFrame]:
    for name, run in runs.items():
        if not isinstance(run, pd.DataFrame):
            raise InputError(
                str(name), None, f"a {type(run).__name__}", "a DataFrame by system; `as_run` makes one of a dict"
            )
    chosen = [parse_measure(m) for m in ([measures] if isinstance(measures, (str, Measure)) else measures)]
    names = [str(m) for m in chosen]
    coder = Coder(qrels, queries)
    lists, coded = coder.lists(runs)
    scored = lists.condensed() if conventions.judged_only else lists
    judged = coder.judgments.count(0)[lists.query] > 0
    values = np.empty((len(chosen), len(lists)))
    for i, measure in enumerate(chosen):
        formula = FORMULAS[measure.name]
        plain = lists if formula.kind == "count" else scored
        value = formula.function(plain, measure.cutoff, **measure.params)
        nothing = lists.relevant(measure.rel) == 0
        if formula.kind == "normalised":
            value = np.where(nothing, {"perfect": 1.0, "zero": 0.0, "skip": np.nan}[conventions.no_relevant], value)
        elif formula.kind == "relevance" and conventions.no_relevant == "skip":
            value = np.where(nothing, np.nan, value)
        values[i] = np.where(judged, value, np.nan)
    frames = {}
    for s, (name, run) in enumerate(coded.items()):
        table = values[:, s * len(coder.ids) : (s + 1) * len(coder.ids)].T.copy()
        table[run.failed] = np.where(np.isnan(table[run.failed]), np.nan, 0.0)
        table[run.unasked] = np.nan
        if run.empty:
            table[:] = np.nan
        frames[name] = pd.DataFrame(table, index=pd.Index(coder.ids, name="query_id"), columns=names)
        frames[name].attrs = {"ignored": run.ignored, "unanswered": run.unanswered, "not_run": run.empty}
    return frames


def answerable(
    qrels: pd.DataFrame | Mapping[str, Mapping[str, int]],
    measures: Sequence[str | Measure],
    *,
    queries: pd.DataFrame | Iterable[str] | None = None,
) -> pd.DataFrame:
    """Which queries have anything relevant, by each measure's own threshold ``rel``.

    The mean of RR cannot pass the share of such queries among the judged ones.

    Returns
    -------
    DataFrame of bool
        Index ``query_id``, a column a measure.

    Examples
    --------
    >>> answerable({"a": {"x": 1}, "b": {"x": 0}}, ["RR", "RR(rel=2)"]).to_dict("list")
    {'RR': [True, False], 'RR(rel=2)': [False, False]}
    """
    coder = Coder(qrels, queries)
    chosen = [parse_measure(m) for m in measures]
    data = {str(m): coder.judgments.count(m.rel) > 0 for m in chosen}
    return pd.DataFrame(data, index=pd.Index(coder.ids, name="query_id"))
