"""Measures of ranked lists against graded judgments.

Every measure is one small function over flat integer arrays that hold the lists of all systems at once; its name, with
its parameters, is a :class:`Measure`, which prints as it is written: ``nDCG(gain=linear)@10``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
import pandas as pd

from searcheval import schema
from searcheval.errors import InputError, nearest

FloatArray = np.ndarray
UNJUDGED = -1


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


@dataclass(frozen=True)
class Measure:
    """A measure with its parameters and cut-off; equal when they are, and printed canonically.

    Examples
    --------
    >>> str(parse_measure("ndcg@10")), parse_measure("RR(rel=2)").params["rel"]
    ('nDCG@10', 2)
    """

    name: str
    cutoff: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        formula = FORMULAS[self.name]
        shown = [f"{k}={v}" for k, v in self.params.items() if k in formula.always or v != formula.defaults[k]]
        return self.name + (f"({','.join(shown)})" if shown else "") + (f"@{self.cutoff}" if self.cutoff else "")

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def rel(self) -> int:
        """The lowest grade that this measure counts as relevant."""
        return int(self.params.get("rel", 1))


@dataclass(frozen=True)
class Judgments:
    """The judgments of Q queries as flat arrays, grades falling within each query.

    ``grade`` and ``of`` have one entry a judged document; ``place`` is its rank in the ideal ranking, from 1.
    """

    queries: int
    of: np.ndarray
    grade: np.ndarray
    place: np.ndarray

    def count(self, least: int) -> np.ndarray:
        """Documents judged ``least`` or higher, a query: integers of shape (Q,)."""
        return np.bincount(self.of[self.grade >= least], minlength=self.queries)


@dataclass(frozen=True)
class Lists:
    """L ranked lists (systems x queries) as flat arrays, ranks rising within each list.

    Attributes
    ----------
    of : int array (rows,)
        The list of each row, from 0 to L - 1.
    rank : int array (rows,)
        Rank from 1.
    grade : int array (rows,)
        Grade, or -1 for an unjudged result.
    query : int array (L,)
        The query of each list, as a position in `judgments`.
    judgments : Judgments
    """

    of: np.ndarray
    rank: np.ndarray
    grade: np.ndarray
    query: np.ndarray
    judgments: Judgments

    def __len__(self) -> int:
        return len(self.query)

    def top(self, cutoff: int | None) -> np.ndarray:
        """Which rows are within the cut-off: booleans (rows,)."""
        return np.ones(len(self.rank), bool) if cutoff is None else self.rank <= cutoff

    def total(self, values: np.ndarray, rows: np.ndarray) -> FloatArray:
        """Sum of ``values`` (rows,) over the chosen rows of each list: (L,)."""
        return np.bincount(self.of[rows], weights=values[rows], minlength=len(self)).astype(float)

    def size(self) -> np.ndarray:
        """How many results each list has: integers (L,)."""
        return np.bincount(self.of, minlength=len(self))

    def relevant(self, rel: int) -> FloatArray:
        """How many documents are judged ``rel`` or higher for each list's query: (L,)."""
        return self.judgments.count(rel)[self.query].astype(float)

    def running(self, rows: np.ndarray) -> np.ndarray:
        """How many of the chosen rows stand at or above each row of the same list: integers (rows,)."""
        total = np.cumsum(rows)
        start = np.searchsorted(self.of, np.arange(len(self)))
        before = np.concatenate([[0], total])[start]
        return total - before[self.of]

    def condensed(self) -> Lists:
        """The same lists without unjudged results, ranked anew."""
        keep = self.grade > UNJUDGED
        rank = self.running(keep)
        return Lists(self.of[keep], rank[keep], self.grade[keep], self.query, self.judgments)


def gain_exponential(grade: np.ndarray) -> FloatArray:
    """``2^grade - 1`` (Burges et al. 2005): each grade is worth about twice the one below; unjudged is 0."""
    return np.exp2(np.maximum(grade, 0)) - 1.0


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
    found = lists.total(value(lists.grade) * discount(lists.rank), rows)
    judged = lists.judgments
    best = np.ones(len(judged.place), bool) if cutoff is None else judged.place <= cutoff
    weights = (value(judged.grade) * discount(judged.place))[best]
    ideal = np.bincount(judged.of[best], weights=weights, minlength=judged.queries)[lists.query]
    return _ratio(found, ideal)


def rr(lists: Lists, cutoff: int | None, rel: int) -> FloatArray:
    """Reciprocal rank of the first result of grade ``rel`` or higher; 0 if there is none (Voorhees 1999)."""
    hit = lists.top(cutoff) & (lists.grade >= rel)
    first = hit & (lists.running(hit) == 1)
    return lists.total(1.0 / lists.rank, first)


def recall(lists: Lists, cutoff: int | None, rel: int) -> FloatArray:
    """Share of *all* documents judged ``rel`` or higher that are in the list, not capped by the cut-off."""
    return _ratio(_hits(lists, cutoff, rel), lists.relevant(rel))


def precision(lists: Lists, cutoff: int | None, rel: int) -> FloatArray:
    """Results of grade ``rel`` or higher over the cut-off, for lists shorter than the cut-off too (trec_eval)."""
    return _hits(lists, cutoff, rel) / cast(int, cutoff)


def average_precision(lists: Lists, cutoff: int | None, rel: int) -> FloatArray:
    """Precision at each relevant result, summed, over all relevant documents (Buckley and Voorhees 2000)."""
    hit = lists.top(cutoff) & (lists.grade >= rel)
    return _ratio(lists.total(lists.running(hit) / lists.rank, hit), lists.relevant(rel))


def r_precision(lists: Lists, cutoff: int | None, rel: int) -> FloatArray:
    """Precision at rank R, where R is the number of documents judged ``rel`` or higher."""
    relevant = lists.relevant(rel)
    rows = (lists.grade >= rel) & (lists.rank <= relevant[lists.of])
    return _ratio(lists.total(np.ones(len(rows)), rows), relevant)


def success(lists: Lists, cutoff: int | None, rel: int) -> FloatArray:
    """1 if any result down to the cut-off has grade ``rel`` or higher, else 0."""
    return (_hits(lists, cutoff, rel) > 0).astype(float)


def f1(lists: Lists, cutoff: int | None, rel: int) -> FloatArray:
    """Harmonic mean of precision and recall at the cut-off (van Rijsbergen 1979): 2 hits / (cut-off + relevant)."""
    return 2 * _hits(lists, cutoff, rel) / (cast(int, cutoff) + lists.relevant(rel))


def rank_biased_precision(lists: Lists, cutoff: int | None, p: float, rel: int) -> FloatArray:
    """``(1 - p) * sum of p^(rank - 1)`` over results of grade ``rel`` or higher (Moffat and Zobel 2008)."""
    hit = lists.top(cutoff) & (lists.grade >= rel)
    return (1 - p) * lists.total(p ** (lists.rank - 1.0), hit)


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
    return lists.total(arrive * stop / lists.rank, rows)


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
    return _ratio(lists.total(term, hit), relevant)


def judged_share(lists: Lists, cutoff: int | None) -> FloatArray:
    """Share of the results returned, down to the cut-off, that are judged; 0 for an empty list."""
    rows = lists.top(cutoff)
    size = lists.size() if cutoff is None else np.minimum(lists.size(), cutoff)
    known = lists.total((lists.grade > UNJUDGED).astype(float), rows)
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
_NAMES = {n.lower(): name for name, f in FORMULAS.items() for n in (name, *f.aliases)}
_SHAPE = re.compile(r"^\s*([A-Za-z][A-Za-z0-9_-]*?)\s*(?:\(([^()]*)\))?\s*(?:[@_]\s*([0-9]+))?\s*$")


def parse_measure(text: str | Measure, *, max_grade: int = schema.MAX_GRADE) -> Measure:
    """A measure from its name.

    Parameters
    ----------
    text : str or Measure
        ``nDCG@10``, ``RR(rel=2)``, ``nDCG(gain=linear)@10``; aliases such as ``ndcg@10``, ``mrr``, ``recall@20`` and
        trec_eval's ``ndcg_cut_10`` are understood. Case does not matter.
    max_grade : int
        The top of the scale, used by ``ERR`` where the name gives none.

    Raises
    ------
    InputError
        For an unknown measure (the nearest is suggested), parameter, value or a missing cut-off.

    Examples
    --------
    >>> [str(parse_measure(m)) for m in ("ndcg@10", "mrr", "recall@20", "map", "ERR@10", "rbp")]
    ['nDCG@10', 'RR', 'R@20', 'AP', 'ERR(max=3)@10', 'RBP(p=0.8)']
    """
    if isinstance(text, Measure):
        return text

    def error(found: str, expected: str) -> InputError:
        return InputError(f"measure {str(text)!r}", None, found, expected)

    match = _SHAPE.match(str(text))
    if match is None:
        raise error(repr(text), "a measure such as nDCG@10 or RR(rel=2)")
    written, inside, cut = match.groups()
    name = _NAMES.get(written.lower())
    if name is None:
        close = nearest(written.lower(), _NAMES)
        suggestion = re.search(r"did you mean '(.+)'", close)
        names = ", ".join(FORMULAS)
        raise error(
            f"unknown measure {written!r}",
            f"one of {names}" + (f" (did you mean {_NAMES[suggestion.group(1)]!r}?)" if suggestion else ""),
        )
    formula = FORMULAS[name]
    params = dict(formula.defaults)
    if "max" in params:
        params["max"] = max_grade
    for item in filter(None, (i.strip() for i in (inside or "").split(","))):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or key not in params:
            raise error(repr(item), f"{name} with {nearest(key, params)}" if params else f"{name} without parameters")
        params[key] = _parameter(key, value, error)
    if formula.cutoff == "required" and cut is None:
        raise error(f"{written} without a cut-off", f"{name}@10, say")
    if formula.cutoff == "none" and cut is not None:
        raise error(f"a cut-off on {name}", f"{name} alone: it is defined on the whole list")
    if cut is not None and int(cut) < 1:
        raise error(f"cut-off {cut}", "a cut-off of 1 or more")
    return Measure(name, int(cut) if cut else None, params)


def _parameter(key: str, value: str, error: Callable[[str, str], InputError]) -> Any:
    if key == "gain":
        if value not in GAINS:
            raise error(f"gain {value!r}", nearest(value, GAINS))
        return value
    try:
        number = float(value) if key == "p" else int(value)
    except ValueError:
        raise error(f"{key}={value}", f"{key} as a number") from None
    if (key == "p" and not 0 < number < 1) or (key != "p" and number < 1):
        raise error(f"{key}={value}", "p between 0 and 1" if key == "p" else f"{key} of 1 or more")
    return number


def evaluate(
    qrels: pd.DataFrame | Mapping[str, Mapping[str, int]],
    run: pd.DataFrame | Mapping[str, pd.DataFrame],
    measures: str | Measure | Iterable[str | Measure],
    *,
    queries: pd.DataFrame | Iterable[str] | None = None,
    conventions: Conventions = Conventions(),
) -> Any:  # DataFrame for a DataFrame, dict for a dict
    """Score one run, or several in one pass, query by query.

    Parameters
    ----------
    qrels : DataFrame or dict
        ``query_id, doc_id, relevance``, one row a judged pair; or ``{query_id: {doc_id: grade}}``.
    run : DataFrame, or dict of DataFrames by system name
        ``query_id, doc_id`` and ``rank`` (trusted) or ``score``. ``run.attrs["failed"]`` names queries on which the
        system raised: those score 0 on every measure.
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


def _evaluate(
    qrels: pd.DataFrame | Mapping[str, Mapping[str, int]],
    runs: Mapping[str, pd.DataFrame],
    measures: str | Measure | Iterable[str | Measure],
    queries: pd.DataFrame | Iterable[str] | None,
    conventions: Conventions,
) -> dict[str, pd.DataFrame]:
    chosen = [parse_measure(m) for m in ([measures] if isinstance(measures, (str, Measure)) else measures)]
    names = [str(m) for m in chosen]
    coder = Coder(qrels, queries)
    coded = {name: coder.run(frame, name) for name, frame in runs.items()}
    lists = coder.lists([c.arrays for c in coded.values()])
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


@dataclass(frozen=True)
class _CodedRun:
    arrays: tuple[np.ndarray, np.ndarray, np.ndarray]  # query, rank, grade of each row, sorted by query and rank
    ignored: list[str]
    unanswered: list[str]
    failed: list[int]
    empty: bool


class Coder:
    """Integer codes for the queries and judged documents of one evaluation."""

    def __init__(
        self,
        qrels: pd.DataFrame | Mapping[str, Mapping[str, int]],
        queries: pd.DataFrame | Iterable[str] | None,
    ) -> None:
        frame = schema.as_qrels(qrels, max_grade=None)
        ids = (
            frame["query_id"]
            if queries is None
            else queries["query_id"]
            if isinstance(queries, pd.DataFrame)
            else queries
        )
        self.query_index = pd.Index(pd.unique(pd.Series(list(ids) if queries is not None else ids, dtype="str")))
        self.ids = self.query_index.tolist()
        query = self.query_index.get_indexer(frame["query_id"])
        document, self.doc_index = pd.factorize(frame["doc_id"])
        self.doc_index = pd.Index(self.doc_index)
        keep = query >= 0
        grade = frame["relevance"].to_numpy()[keep]
        query, document = query[keep], document[keep]
        self._keys, self._grades = self._sorted(query * len(self.doc_index) + document, grade)
        order = np.lexsort((-grade, query))
        of = query[order]
        start = np.searchsorted(of, np.arange(len(self.ids)))
        place = np.arange(len(of)) - start[of] + 1 if len(of) else of
        self.judgments = Judgments(len(self.ids), of, grade[order], place)

    @staticmethod
    def _sorted(keys: np.ndarray, grades: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(keys)
        return keys[order], grades[order]

    def run(self, run: pd.DataFrame, name: str) -> _CodedRun:
        """Rows of a run as codes, with the queries that match nothing on either side."""
        frame = run if {"query_id", "doc_id", "rank"} <= set(run.columns) else schema.as_run(run, name=name)
        codes, held = pd.factorize(frame["query_id"])
        if len(frame) and pd.api.types.is_numeric_dtype(frame["query_id"].dtype):
            schema.check_ids(frame, ["query_id"], schema.Source(name))
        held = pd.Index(held)
        to_set = self.query_index.get_indexer(held) if len(held) else np.array([], dtype=np.int64)
        query = to_set[codes] if len(codes) else codes
        inside = query >= 0
        ignored = [q for q, code in zip(held, to_set, strict=True) if code < 0]
        if not inside.all():
            frame, query = frame[inside], query[inside]
        rank = frame["rank"].to_numpy()
        order = np.lexsort((rank, query))
        if (order != np.arange(len(order))).any():
            frame, query = frame.iloc[order], query[order]
        schema.check_ids(frame, ["doc_id"], schema.Source(name))
        document = self.doc_index.get_indexer(frame["doc_id"])
        self._check_twice(frame, query, document, name)
        start = np.searchsorted(query, np.arange(len(self.ids)))
        place = np.arange(len(query)) - start[query] + 1 if len(query) else query
        key = query * len(self.doc_index) + document
        at = np.minimum(np.searchsorted(self._keys, key), max(len(self._keys) - 1, 0))
        known = (document >= 0) & (self._keys[at] == key) if len(self._keys) else np.zeros(len(key), bool)
        grade = np.where(known, self._grades[at], UNJUDGED) if len(self._keys) else np.full(len(key), UNJUDGED)
        answered = np.bincount(query, minlength=len(self.ids)) > 0
        answered[self.query_index.get_indexer([q for q in run.attrs.get("answered", []) if q in self.query_index])] = (
            True
        )
        failed = self.query_index.get_indexer([q for q in run.attrs.get("failed", []) if q in self.query_index])
        unanswered = [q for q, a in zip(self.ids, answered, strict=True) if not a]
        return _CodedRun((query, place, grade), ignored, unanswered, list(failed), len(query) == 0)

    def _check_twice(self, frame: pd.DataFrame, query: np.ndarray, document: np.ndarray, name: str) -> None:
        """A document twice in a list would let nDCG pass 1. Judged ones compare as codes, the others as strings."""
        judged = document >= 0
        keys = np.sort((query * len(self.doc_index) + document)[judged])
        if (keys[1:] == keys[:-1]).any() or frame.loc[~judged, ["query_id", "doc_id"]].duplicated().any():
            again = frame.duplicated(["query_id", "doc_id"]).to_numpy()
            row = frame[again].iloc[0]
            raise InputError(
                name, None, f"document {row['doc_id']!r} twice for query {row['query_id']!r}", "each only once"
            )

    def lists(self, runs: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Lists:
        """The coded runs, one after the other."""
        n = len(self.ids)
        shifted = [query + s * n for s, (query, _, _) in enumerate(runs)]
        of, rank, grade = (
            np.concatenate(part) if part else np.array([], dtype=np.int64)
            for part in (shifted, [r for _, r, _ in runs], [g for _, _, g in runs])
        )
        return Lists(of, rank, grade, np.tile(np.arange(n), len(runs)), self.judgments)
