"""What the frames hold. Everything that comes in is checked here once, and trusted afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from searcheval.errors import InputError

RUN = ["query_id", "doc_id", "rank", "score"]
MAX_GRADE = 3

# The names that other tools use for our columns, lower case.
SYNONYMS = {
    "query_id": ["query_id", "qid", "topic", "topic_id", "query-id", "queryid", "q_id"],
    "doc_id": ["doc_id", "docno", "docid", "doc", "document_id", "product_id", "corpus-id", "pid", "did", "item_id"],
    "relevance": ["relevance", "grade", "label", "rel", "rating", "judgment", "judgement", "gain"],
    "rank": ["rank", "position"],
    "score": ["score", "sim", "similarity"],
    "text": ["text", "query", "description", "body", "content"],
    "title": ["title", "name"],
}
SYNONYM = {name: column for column, names in SYNONYMS.items() for name in names}


class Source:
    """Where a frame came from, to name file and line in an error.

    ``lines[i]`` (or ``lines(i)``) is the line of row ``i``; without them an error in a caller's frame names the row.
    """

    def __init__(self, name: str, lines: Sequence[int] | Callable[[int], int] | None = None) -> None:
        self.name = name
        self._line = lines if lines is None or callable(lines) else lines.__getitem__

    def place(self, row: int) -> str:
        """Where a row stands, in words."""
        return f"row {row}" if self._line is None else f"line {int(self._line(row))}"

    def error(self, row: int | None, found: str, expected: str) -> InputError:
        if row is None:
            return InputError(self.name, None, found, expected)
        if self._line is None:
            return InputError(f"{self.name} (row {row})", None, found, expected)
        return InputError(self.name, int(self._line(row)), found, expected)


def canonical_columns(columns: Iterable[Any], wanted: Iterable[str], source: Source) -> dict[Any, str]:
    """Which of ``columns`` stand for the ``wanted`` ones; a column that has its own name already wins over a synonym.

    Raises
    ------
    InputError
        If two columns stand for the same one.
    """
    wanted, columns = set(wanted), list(columns)
    mapping: dict[Any, str] = {}
    exact = {c for c in columns if c in wanted}
    for column in columns:
        name = column if column in wanted else SYNONYM.get(str(column).strip().lower())
        if name not in wanted or (column != name and name in exact):
            continue
        if name in mapping.values():
            first = next(c for c, n in mapping.items() if n == name)
            raise source.error(None, f"columns {first!r} and {column!r}, both a {name}", f"one {name} column")
        mapping[column] = name
    return mapping


def require(frame: pd.DataFrame, columns: Sequence[str], source: Source) -> None:
    """Raise InputError if a required column is missing, naming those that are there."""
    missing = [c for c in columns if c not in frame.columns]
    if missing:
        have = ", ".join(str(c) for c in frame.columns) or "none"
        wanted = missing[0]
        also = f" (or {', '.join(n for n in SYNONYMS.get(wanted, []) if n != wanted)})" if wanted in SYNONYMS else ""
        raise source.error(None, f"no column {wanted!r} among {have}", f"a column {wanted!r}{also}")


def as_run(
    source: pd.DataFrame | Mapping[str, Mapping[str, float]],
    *,
    name: str = "run",
    on_duplicate: Literal["error", "first"] = "error",
    lines: Sequence[int] | Callable[[int], int] | None = None,
) -> pd.DataFrame:
    """A caller's frame or nested dict as a run: ordered lists, one row a result.

    Parameters
    ----------
    source : DataFrame or dict
        Columns ``query_id, doc_id`` and ``rank`` or ``score`` or both (the field's synonyms are understood), or
        ``{query_id: {doc_id: score}}``. A ``rank`` is trusted and nothing re-sorts; else the lists are sorted by score,
        compared as float32 as trec_eval does, ties by doc_id descending; with neither, the order given is the ranking.
    name : str
        Used in errors.
    on_duplicate : {"error", "first"}
        What to do when a list holds a document twice; ``"first"`` keeps the better rank.
    lines : sequence of int or function, optional
        Line number of each row, for errors.

    Returns
    -------
    DataFrame
        ``query_id, doc_id, rank, score``; ranks from 1 without gaps; queries in order of first appearance.

    Raises
    ------
    InputError
        For a missing column, ids that are not strings, a NaN or infinite score, a duplicate document.

    Examples
    --------
    >>> as_run({"q1": {"a": 0.2, "b": 0.9}})["doc_id"].tolist()
    ['b', 'a']
    """
    where = Source(name, lines)
    frame = nested(source, "score", where) if isinstance(source, Mapping) else source
    columns = canonical_columns(frame.columns, RUN, where)
    frame = frame[list(columns)].rename(columns=columns)
    require(frame, ["query_id", "doc_id"], where)
    by = "rank" if "rank" in frame.columns else "score" if "score" in frame.columns else "given"
    return rank_lists(frame, by=by, source=where, on_duplicate=on_duplicate)


def rank_lists(
    frame: pd.DataFrame, *, by: str, source: Source, on_duplicate: Literal["error", "first"] = "error"
) -> pd.DataFrame:
    """Checked rows of a run in ranked order: ``by`` is ``"score"`` (trec_eval's order), ``"rank"`` or ``"given"``.

    See Also
    --------
    as_run : the public way in.
    """
    check_ids(frame, ["query_id", "doc_id"], source)
    query, _ = encode(frame["query_id"])
    score = _numbers(frame, "score", source) if "score" in frame.columns else np.full(len(frame), np.nan)
    if by == "score":
        order = _trec_order(query, score, frame["doc_id"])
    else:
        order = _order(query, _numbers(frame, "rank", source) if by == "rank" else None)
    ordered = frame
    if order is not None:
        ordered, query, score = frame.iloc[order], query[order], score[order]
    twice = repeated(query, ordered["doc_id"])
    if twice.any():
        if on_duplicate == "error":
            # Of the two rows, the one later in the file is the one to name.
            raise source.error(*_duplicate(frame, ["query_id", "doc_id"], source))
        ordered, query, score = ordered[~twice], query[~twice], score[~twice]
    rank = np.arange(1, len(query) + 1)
    start = np.flatnonzero(np.diff(query, prepend=-1))
    rank -= np.repeat(start, np.diff(start, append=len(query)))
    columns = {
        "query_id": ordered["query_id"].astype("str").array,
        "doc_id": ordered["doc_id"].astype("str").array,
        "rank": rank,
        "score": score,
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(len(query)), copy=False)


def as_qrels(
    source: pd.DataFrame | Mapping[str, Mapping[str, int]],
    *,
    name: str = "qrels",
    max_grade: int | None = MAX_GRADE,
    negative: Literal["error", "zero"] = "error",
    lines: Sequence[int] | Callable[[int], int] | None = None,
) -> pd.DataFrame:
    """A caller's frame or nested dict as qrels: one graded judgment a (query, document) pair.

    Parameters
    ----------
    source : DataFrame or dict
        Columns ``query_id, doc_id, relevance`` (synonyms understood; further columns are kept), or
        ``{query_id: {doc_id: grade}}``.
    name : str
        Used in errors.
    max_grade : int or None
        The highest grade allowed; None for no limit.
    negative : {"error", "zero"}
        What a negative grade is (some TREC collections mark spam with -2): an error, or grade 0.
    lines : sequence of int or function, optional
        Line number of each row, for errors.

    Returns
    -------
    DataFrame
        ``query_id, doc_id, relevance`` (integers) and any further columns.

    Raises
    ------
    InputError
        For a missing column, ids that are not strings, a grade off the scale, a pair judged twice, no judgment at all.

    Examples
    --------
    >>> as_qrels({"q1": {"a": 3, "b": 0}})["relevance"].tolist()
    [3, 0]
    """
    where = Source(name, lines)
    frame = nested(source, "relevance", where) if isinstance(source, Mapping) else source
    required = ["query_id", "doc_id", "relevance"]
    frame = frame.rename(columns=canonical_columns(frame.columns, required, where)).reset_index(drop=True)
    require(frame, required, where)
    if frame.empty:
        raise where.error(None, "no judgment", "at least one judged pair")
    check_ids(frame, ["query_id", "doc_id"], where)
    grade = _numbers(frame, "relevance", where)
    scale = "a whole number from 0" + (f" to {max_grade} (max_grade)" if max_grade is not None else "")
    bad = (grade != np.floor(grade)) | ((grade < 0) & (negative == "error"))
    if max_grade is not None:
        bad |= grade > max_grade
    if bad.any():
        row = int(np.argmax(bad))
        hint = "; `negative: zero` reads negative grades as 0" if grade[row] < 0 else ""
        raise where.error(row, f"grade {grade[row]:g}", scale + hint)
    frame["relevance"] = np.maximum(grade, 0).astype("int64")
    query = encode(frame["query_id"])[0]
    order = _order(query, None)
    grouped = (query, frame["doc_id"]) if order is None else (query[order], frame["doc_id"].iloc[order])
    if repeated(*grouped).any():
        raise where.error(*_duplicate(frame, ["query_id", "doc_id"], where))
    rest = [c for c in frame.columns if c not in required]
    return frame[required + rest].astype({"query_id": "str", "doc_id": "str"})


def as_queries(
    frame: pd.DataFrame, *, name: str = "queries", lines: Sequence[int] | Callable[[int], int] | None = None
) -> pd.DataFrame:
    """A caller's frame as queries: ``query_id, text`` and whatever else it holds, each id once.

    Raises
    ------
    InputError
        For a missing column, no query, ids that are not strings, the same id twice, a query without text.
    """
    where = Source(name, lines)
    frame = frame.rename(columns=canonical_columns(frame.columns, ["query_id", "text"], where)).reset_index(drop=True)
    return _entities(frame, "query_id", ["query_id", "text"], where)


def as_documents(
    frame: pd.DataFrame, *, name: str = "documents", lines: Sequence[int] | Callable[[int], int] | None = None
) -> pd.DataFrame:
    """A caller's frame as documents: ``doc_id``, usually ``title`` and ``text``, and further fields, each id once.

    Raises
    ------
    InputError
        For a missing column, no document, ids that are not strings, the same id twice.
    """
    where = Source(name, lines)
    frame = frame.rename(columns=canonical_columns(frame.columns, ["doc_id", "title", "text"], where))
    return _entities(frame.reset_index(drop=True), "doc_id", ["doc_id"], where)


def _entities(frame: pd.DataFrame, key: str, required: Sequence[str], where: Source) -> pd.DataFrame:
    kind = {"query_id": "query", "doc_id": "document"}[key]
    if frame.empty:
        raise where.error(None, f"no {kind}", f"at least one {kind}")
    require(frame, required, where)
    check_ids(frame, [key], where)
    if "text" in required:
        text = frame["text"]
        bad = np.array([not isinstance(t, str) or not t.strip() for t in text])
        if bad.any():
            row = int(np.argmax(bad))
            value = text.iloc[row]
            found = "no text" if value is None or value != value else f"text {_shown(value)}"
            raise where.error(row, found, "the text of the query, as a string")
    if frame[key].duplicated().any():
        raise where.error(*_duplicate(frame, [key], where))
    rest = [c for c in frame.columns if c not in required]
    return frame[[*required, *rest]].astype({key: "str"})


def check_ids(frame: pd.DataFrame, columns: Sequence[str], where: Source) -> None:
    """Raise InputError unless every id is a non-empty string: ``7`` and ``"007"`` must not become one."""
    for column in columns:
        values = frame[column]
        if pd.api.types.is_numeric_dtype(values.dtype) and len(values):
            raise where.error(
                0,
                f"{column} {_shown(values.iloc[0])}, a number",
                f"a string; use frame.astype({{{column!r}: str}}) first",
            )
        if isinstance(values.dtype, pd.StringDtype):
            bad = (values.isna() | (values == "")).to_numpy(dtype=bool)
        else:
            bad = np.fromiter((not isinstance(v, str) or not v for v in values), dtype=bool, count=len(values))
        if bad.any():
            row = int(np.argmax(bad))
            value = values.iloc[row]
            found = (
                f"no {column}"
                if value == "" or value is None or value is pd.NA or value != value
                else f"{column} {_shown(value)}"
            )
            raise where.error(row, found, f"a {column} that is a non-empty string")


def _numbers(frame: pd.DataFrame, column: str, where: Source) -> np.ndarray:
    values = frame[column]
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype="float64", na_value=np.nan)
    bad = ~np.isfinite(numbers)
    if bad.any():
        row = int(np.argmax(bad))
        raise where.error(row, f"{column} {_shown(values.iloc[row])}", f"a finite number as {column}")
    return numbers


def _shown(value: Any) -> str:
    """A value as Python prints it, without numpy's type around it."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def _duplicate(frame: pd.DataFrame, key: list[str], where: Source) -> tuple[int, str, str]:
    row = int(np.argmax(frame.duplicated(key).to_numpy()))
    pair = " ".join(f"{k} {frame[k].iloc[row]!r}" for k in key)
    first = int(np.argmax((frame[key] == frame[key].iloc[row]).all(axis=1).to_numpy()))
    return row, f"{pair} again (first on {where.place(first)})", "each only once"


@contextmanager
def lean_memory(*, release: bool = False) -> Iterator[None]:
    """Have Arrow allocate from the system, which takes back what is freed; its own allocator keeps most of it.

    With ``release`` what is free at the end goes back at once, which takes some milliseconds.
    """
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)
        if release:
            pa.system_memory_pool().release_unused()


def encode(values: pd.Series) -> tuple[np.ndarray, pa.Array]:
    """Strings as codes: 32-bit integers (rows,) from 0, and the distinct strings in order of first appearance.

    >>> encode(pd.Series(["b", "a", "b"]))[0].tolist()
    [0, 1, 0]
    """
    coded = strings(values).dictionary_encode()
    return coded.indices.to_numpy(zero_copy_only=False), coded.dictionary


def strings(values: pd.Series) -> pa.Array:
    """A column as one Arrow array of strings."""
    array = pa.array(values, from_pandas=True)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array if pa.types.is_large_string(array.type) else array.cast(pa.large_string())


def positions(values: pa.Array, among: pa.Array) -> np.ndarray:
    """Where each of ``values`` stands in ``among``: integers, -1 for one that does not."""
    found = pc.index_in(values, value_set=among)
    return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)


def repeated(query: np.ndarray, doc_id: pd.Series) -> np.ndarray:
    """Which rows repeat a document of their query; ``query`` is sorted."""
    twice = np.zeros(len(query), dtype=bool)
    for start, stop in slices(query, 50_000):
        document, distinct = encode(doc_id.iloc[start:stop])
        keys = query[start:stop].astype(np.int64) * len(distinct) + document
        twice[start:stop] = pd.Series(keys, copy=False).duplicated().to_numpy()
    return twice


def slices(query: np.ndarray, size: int) -> Iterator[tuple[int, int]]:
    """Ranges of about ``size`` rows that hold whole queries; ``query`` is sorted.

    >>> list(slices(np.array([0, 0, 1, 1, 1, 2]), 3))
    [(0, 5), (5, 6)]
    """
    start = 0
    while start < len(query):
        stop = int(np.searchsorted(query, query[min(start + size, len(query)) - 1], side="right"))
        yield start, stop
        start = stop


def _order(query: np.ndarray, key: np.ndarray | None) -> np.ndarray | None:
    """The stable order by query, then by rising ``key``; None where the rows stand so already, as in most files."""
    back = query[1:] < query[:-1]
    if key is not None:
        back |= (query[1:] == query[:-1]) & (key[1:] < key[:-1])
    if not back.any():
        return None
    return np.argsort(query, kind="stable") if key is None else np.lexsort((key, query))


def _trec_order(query: np.ndarray, score: np.ndarray, doc_id: pd.Series) -> np.ndarray | None:
    """trec_eval's order: query, score as float32 descending, doc_id descending in code points; None if so already."""
    key = -score.astype("float32")
    order = _order(query, key)
    q, s = (query, key) if order is None else (query[order], key[order])
    tied = (q[1:] == q[:-1]) & (s[1:] == s[:-1])
    if not tied.any():
        return order
    # Only the rows inside a tie need their ids compared: strings are slow to sort.
    inside = np.append(tied, False) | np.append(False, tied)
    order = np.arange(len(key)) if order is None else order
    rows = order[inside]
    ids = doc_id.iloc[rows].to_numpy(dtype=object)
    rank_of_id = np.empty(len(rows), dtype=np.int64)
    rank_of_id[sorted(range(len(rows)), key=ids.__getitem__, reverse=True)] = np.arange(len(rows))
    order[inside] = rows[np.lexsort((rank_of_id, key[rows], query[rows]))]
    return order


def nested(source: Mapping[str, Any], value: str, where: Source) -> pd.DataFrame:
    rows = []
    for query_id, results in source.items():
        if not isinstance(results, Mapping):
            raise where.error(None, f"{type(results).__name__} for query {query_id!r}", f"{{doc_id: {value}}}")
        rows += [(query_id, doc_id, number) for doc_id, number in results.items()]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", value])
