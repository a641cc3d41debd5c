"""Integer codes for the queries and documents of one evaluation. Arrow hashes the strings; the rest is arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from searcheval import schema
from searcheval.errors import InputError
from searcheval.metrics.lists import UNJUDGED, Judgments, Lists
from searcheval.schema import encode, positions, strings

# Rows of a run looked up at once, and the cells (queries x documents among them) up to which a table serves.
_ROWS, _CELLS = 25_000, 16_000_000


@dataclass(frozen=True)
class CodedRun:
    """What became of a run beside its rows: queries as positions in the set, or as ids."""

    ignored: list[str]
    unanswered: list[str]
    failed: list[int]
    unasked: list[int]
    empty: bool


class Coder:
    """The queries and judgments of one evaluation as codes, and runs in the same codes."""

    def __init__(
        self,
        qrels: pd.DataFrame | Mapping[str, Mapping[str, int]],
        queries: pd.DataFrame | Iterable[str] | None,
    ) -> None:
        frame = schema.as_qrels(qrels, max_grade=None)
        codes, judged = encode(frame["query_id"])
        if queries is None:
            self._set = judged
        else:
            ids = queries["query_id"] if isinstance(queries, pd.DataFrame) else pd.Series(list(queries), dtype="str")
            self._set = encode(ids)[1]
        self.ids: list[str] = self._set.to_pylist()
        query = positions(judged, self._set)[codes]
        order = np.argsort(query, kind="stable")[np.count_nonzero(query < 0) :]
        query, grade = query[order], frame["relevance"].to_numpy()[order]
        grade = grade.astype(np.int8) if grade.max(initial=0) <= np.iinfo(np.int8).max else grade
        self.judgments = _judgments(len(self.ids), query, grade)
        # The judged documents, query by query.
        self._judged, self._grade = strings(frame["doc_id"].iloc[order]), grade
        self._first = np.searchsorted(query, np.arange(len(self.ids) + 1))

    def lists(self, runs: Mapping[str, pd.DataFrame]) -> tuple[Lists, dict[str, CodedRun]]:
        """The lists of several runs one after the other, ``len(ids)`` for each, and what became of the rest of each.

        Raises
        ------
        InputError
            For a frame that is no run, or a document twice for a query.
        """
        n = len(self.ids)
        coded: dict[str, CodedRun] = {}
        total, stop = sum(len(run) for run in runs.values()), 0
        of, rank, grade = np.empty(total, np.int32), np.empty(total, np.int32), np.empty(total, self._grade.dtype)
        for s, (name, run) in enumerate(runs.items()):
            rows, query, ignored = self._rows(run, name)
            start, stop = stop, stop + len(query)
            first = np.searchsorted(query, np.arange(n))
            of[start:stop] = query + s * n
            rank[start:stop] = np.arange(1, len(query) + 1) - first[query]
            self._find_grades(rows, query, grade[start:stop], name)
            coded[name] = self._coded(run, query, ignored)
        query = np.tile(np.arange(n), len(runs))
        return Lists(of[:stop], rank[:stop], grade[:stop], query, self.judgments), coded

    def _find_grades(self, rows: pd.DataFrame, query: np.ndarray, grade: np.ndarray, name: str) -> None:
        """Write the grade of each row, -1 for an unjudged one, some whole queries at a time: that bounds the memory."""
        documents = strings(rows["doc_id"])
        for start, stop in schema.slices(query, _ROWS):
            low, high = int(query[start]), int(query[stop - 1]) + 1
            first, last = self._first[low], self._first[high]
            judged_query = np.repeat(np.arange(high - low), np.diff(self._first[low : high + 1]))
            both = pa.concat_arrays([self._judged[first:last], documents[start:stop]]).dictionary_encode()
            codes, width = both.indices.to_numpy().astype(np.int64), len(both.dictionary)
            judged = judged_query * width + codes[: last - first]
            keys = (query[start:stop] - low) * width + codes[last - first :]
            if pd.Series(keys, copy=False).duplicated().any():
                raise _twice(rows.iloc[start:stop], keys, name)
            grade[start:stop] = _looked_up(keys, judged, self._grade[first:last], (high - low) * width)

    def _rows(self, run: pd.DataFrame, name: str) -> tuple[pd.DataFrame, np.ndarray, list[str]]:
        """The run's rows in the set, by query and rank; the query of each; queries outside the set."""
        frame = run if {"query_id", "doc_id", "rank"} <= set(run.columns) else schema.as_run(run, name=name)
        schema.check_ids(frame, ["query_id", "doc_id"], schema.Source(name))
        codes, held = encode(frame["query_id"])
        place = positions(held, self._set)
        query = place[codes]
        ignored = [q for q, p in zip(held.to_pylist(), place, strict=True) if p < 0]
        if ignored:
            inside = query >= 0
            frame, query = frame[inside], query[inside]
        rank = frame["rank"].to_numpy()
        step = np.diff(query)
        if (step < 0).any() or ((step == 0) & (np.diff(rank) <= 0)).any():
            order = np.lexsort((rank, query))
            frame, query = frame.iloc[order], query[order]
        return frame, query, ignored

    def _coded(self, run: pd.DataFrame, query: np.ndarray, ignored: list[str]) -> CodedRun:
        place = {q: i for i, q in enumerate(self.ids)}
        answered = np.bincount(query, minlength=len(self.ids)) > 0
        answered[[place[q] for q in run.attrs.get("answered", []) if q in place]] = True
        asked = set(run.attrs.get("asked", self.ids))
        unanswered = [q for q, a in zip(self.ids, answered, strict=True) if not a and q in asked]
        failed = [place[q] for q in run.attrs.get("failed", []) if q in place]
        unasked = [i for q, i in place.items() if q not in asked]
        return CodedRun(ignored, unanswered, failed, unasked, len(query) == 0)


def _looked_up(keys: np.ndarray, judged: np.ndarray, grade: np.ndarray, cells: int) -> np.ndarray:
    """The grade at each of ``keys``, -1 where it is not among ``judged``: from a table if that is small."""
    if cells <= _CELLS:
        table = np.full(cells, UNJUDGED, dtype=grade.dtype)
        table[judged] = grade
        return table[keys]
    if not len(judged):
        return np.full(len(keys), UNJUDGED)
    order = np.argsort(judged)
    at = np.minimum(np.searchsorted(judged, keys, sorter=order), len(order) - 1)
    return np.where(judged[order[at]] == keys, grade[order[at]], UNJUDGED)


def _twice(rows: pd.DataFrame, keys: np.ndarray, name: str) -> InputError:
    """A document twice in a list would let nDCG pass 1."""
    row = rows.iloc[int(np.argmax(pd.Series(keys, copy=False).duplicated()))]
    found = f"document {row['doc_id']!r} twice for query {row['query_id']!r}"
    return InputError(name, None, found, "each only once")


def _judgments(queries: int, query: np.ndarray, grade: np.ndarray) -> Judgments:
    order = np.lexsort((-grade, query))
    of = query[order]
    first = np.searchsorted(of, np.arange(queries))
    place = np.arange(len(of)) - first[of] + 1 if len(of) else of
    return Judgments(queries, of, grade[order], place)
