"""One small function a measure, over the lists of all systems at once; what its name may carry stands in `FORMULAS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np

from searcheval import schema
from searcheval.errors import InputError
from searcheval.metrics.lists import UNJUDGED, FloatArray, Lists


def gain_exponential(grade: np.ndarray) -> FloatArray:
    """``2^grade - 1`` (Burges et al. 2005): each grade is worth about twice the one below; unjudged is 0."""
    return np.exp2(np.maximum(grade, 0).astype(float)) - 1.0


def gain_linear(grade: np.ndarray) -> FloatArray:
    """The grade itself (Järvelin and Kekäläinen 2002, trec_eval); unjudged is 0."""
    return np.maximum(grade, 0).astype(float)


GAINS: dict[str, Callable[[np.ndarray], FloatArray]] = {"exp": gain_exponential, "linear": gain_linear}


def discount(rank: np.ndarray) -> FloatArray:
    """``1 / log2(rank + 1)``, rank from 1 (Järvelin and Kekäläinen 2002).

    >>> discount(np.array([1, 3])).round(4).tolist()
    [1.0, 0.5]
    """
    return 1.0 / np.log2(np.asarray(rank) + 1.0)


def ndcg(lists: Lists, cutoff: int | None, gain: str) -> FloatArray:
    """Normalised discounted cumulative gain: DCG over that of the ideal ranking of *all judged documents*.

    DCG = sum of gain(grade) / log2(rank + 1) down to the cut-off (Järvelin and Kekäläinen 2002; Burges et al. 2005).
    """
    value = GAINS[gain]
    rows = lists.top(cutoff)
    found = lists.total(value(lists.grade[rows]) * discount(lists.rank[rows]), rows)
    judged = lists.judgments
    best = np.ones(len(judged.place), bool) if cutoff is None else judged.place <= cutoff
    weights = (value(judged.grade) * discount(judged.place))[best]
    ideal = np.bincount(judged.of[best], weights=weights, minlength=judged.queries)[lists.query]
    return _ratio(found, ideal)


def rr(lists: Lists, cutoff: int | None, rel: int) -> FloatArray:
    """Reciprocal rank of the first result of grade ``rel`` or higher; 0 if there is none (Voorhees 1999)."""
    hit = lists.top(cutoff) & (lists.grade >= rel)
    first = hit & (lists.running(hit) == 1)
    return lists.total(1.0 / lists.rank[first], first)


def recall(lists: Lists, cutoff: int | None, rel: int) -> FloatArray:
    """Share of *all* documents judged ``rel`` or higher that are in the list, not capped by the cut-off."""
    return _ratio(_hits(lists, cutoff, rel), lists.relevant(rel))


def precision(lists: Lists, cutoff: int | None, rel: int) -> FloatArray:
    """Results of grade ``rel`` or higher over the cut-off, for lists shorter than the cut-off too (trec_eval)."""
    return _hits(lists, cutoff, rel) / cast(int, cutoff)


def average_precision(lists: Lists, cutoff: int | None, rel: int) -> FloatArray:
    """Precision at each relevant result, summed, over all relevant documents (Buckley and Voorhees 2000)."""
    hit = lists.top(cutoff) & (lists.grade >= rel)
    return _ratio(lists.total(lists.running(hit)[hit] / lists.rank[hit], hit), lists.relevant(rel))


def r_precision(lists: Lists, cutoff: int | None, rel: int) -> FloatArray:
    """Precision at rank R, where R is the number of documents judged ``rel`` or higher."""
    relevant = lists.relevant(rel)
    rows = (lists.grade >= rel) & (lists.rank <= relevant[lists.of])
    return _ratio(np.bincount(lists.of[rows], minlength=len(lists)).astype(float), relevant)


def success(lists: Lists, cutoff: int | None, rel: int) -> FloatArray:
    """1 if any result down to the cut-off has grade ``rel`` or higher, else 0."""
    return (_hits(lists, cutoff, rel) > 0).astype(float)


def f1(lists: Lists, cutoff: int | None, rel: int) -> FloatArray:
    """Harmonic mean of precision and recall at the cut-off (van Rijsbergen 1979): 2 hits / (cut-off + relevant)."""
    return 2 * _hits(lists, cutoff, rel) / (cast(int, cutoff) + lists.relevant(rel))


def rank_biased_precision(lists: Lists, cutoff: int | None, p: float, rel: int) -> FloatArray:
    """``(1 - p) * sum of p^(rank - 1)`` over results of grade ``rel`` or higher (Moffat and Zobel 2008)."""
    hit = lists.top(cutoff) & (lists.grade >= rel)
    return (1 - p) * lists.total(p ** (lists.rank[hit] - 1.0), hit)


def expected_reciprocal_rank(lists: Lists, cutoff: int | None, max: int) -> FloatArray:
    """Expected ``1/rank`` of the result where a reader stops (Chapelle et al. 2009).

    The probability to stop at a result is ``(2^grade - 1) / 2^max``, and 0 for an unjudged one.
    """
    rows = lists.top(cutoff) & (lists.grade > 0)
    if rows.any() and lists.grade.max() > max:
        raise InputError(f"measure ERR(max={max})", None, f"grade {lists.grade.max()}", f"grades up to {max}")
    stop = gain_exponential(lists.grade) / 2.0**max
    # log of the probability to arrive: the sum of log(1 - stop) over the results above in the same list
    step = np.where(rows, np.log1p(-np.where(rows, stop, 0.0)), 0.0)
    total = np.concatenate([[0.0], np.cumsum(step)])
    start = np.searchsorted(lists.of, np.arange(len(lists)))
    arrive = np.exp(total[:-1] - total[start][lists.of]) if len(step) else step
    return lists.total((arrive * stop / lists.rank)[rows], rows)


def bpref(lists: Lists, cutoff: int | None, rel: int) -> FloatArray:
    """``1/R * sum of 1 - min(n, R) / min(R, N)`` over retrieved relevant results (Buckley and Voorhees 2004,
    trec_eval).

    n counts the judged irrelevant results above, R the relevant and N the irrelevant judged documents; where n is 0 the
    term is 1. Unjudged results are passed over.
    """
    relevant = lists.relevant(rel)
    judged = lists.judgments.count(0)[lists.query]
    hit = lists.grade >= rel
    wrong = (lists.grade > UNJUDGED) & ~hit
    above = np.minimum(lists.running(wrong), relevant[lists.of])
    bound = np.minimum(relevant, judged - relevant)[lists.of]
    term = 1.0 - np.divide(above, bound, out=np.zeros(len(above)), where=above > 0)
    return _ratio(lists.total(term[hit], hit), relevant)


def judged_share(lists: Lists, cutoff: int | None) -> FloatArray:
    """Share of the results returned, down to the cut-off, that are judged; 0 for an empty list."""
    rows = lists.top(cutoff)
    size = lists.size() if cutoff is None else np.minimum(lists.size(), cutoff)
    known = lists.total((lists.grade[rows] > UNJUDGED).astype(float), rows)
    return np.divide(known, size, out=np.zeros(len(lists)), where=size > 0)


def number_returned(lists: Lists, cutoff: int | None) -> FloatArray:
    """How many results the list has."""
    return lists.size().astype(float)


def abstained(lists: Lists, cutoff: int | None) -> FloatArray:
    """On a judged query with nothing relevant, 1 for an empty list, else 0; NaN on every other query."""
    return np.where(lists.relevant(1) > 0, np.nan, (lists.size() == 0).astype(float))


def _hits(lists: Lists, cutoff: int | None, rel: int) -> FloatArray:
    rows = lists.top(cutoff) & (lists.grade >= rel)
    return np.bincount(lists.of[rows], minlength=len(lists)).astype(float)


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """``part / whole``; NaN where there is no whole, for `Conventions.no_relevant` to decide."""
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


@dataclass(frozen=True)
class Formula:
    """A function of this module with what its name may carry."""

    function: Callable[..., FloatArray]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    cutoff: Literal["none", "optional", "required"] = "optional"
    kind: Literal["normalised", "relevance", "count"] = "relevance"
    always: frozenset[str] = frozenset()  # parameters printed even at their default
    aliases: tuple[str, ...] = ()


FORMULAS: dict[str, Formula] = {
    "nDCG": Formula(ndcg, {"gain": "exp"}, kind="normalised", aliases=("ndcg_cut",)),
    "RR": Formula(rr, {"rel": 1}, aliases=("mrr", "recip_rank", "reciprocal_rank")),
    "R": Formula(recall, {"rel": 1}, "required", "normalised", aliases=("recall",)),
    "P": Formula(precision, {"rel": 1}, "required", aliases=("precision", "prec")),
    "AP": Formula(average_precision, {"rel": 1}, kind="normalised", aliases=("map", "map_cut")),
    "RPrec": Formula(r_precision, {"rel": 1}, "none", "normalised", aliases=("r_precision", "r-precision")),
    "Success": Formula(success, {"rel": 1}, "required", aliases=("hit_rate", "hits", "hit")),
    "F1": Formula(f1, {"rel": 1}, "required", aliases=("f1_score",)),
    "RBP": Formula(rank_biased_precision, {"p": 0.8, "rel": 1}, always=frozenset({"p"})),
    "ERR": Formula(expected_reciprocal_rank, {"max": schema.MAX_GRADE}, always=frozenset({"max"})),
    "Bpref": Formula(bpref, {"rel": 1}, "none", "normalised"),
    "Judged": Formula(judged_share, {}, "required", "count"),
    "NumRet": Formula(number_returned, {}, "none", "count", aliases=("num_ret",)),
    "Abstained": Formula(abstained, {}, "none", "count"),
}
