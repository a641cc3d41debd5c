"""Integer codes for the queries and documents of one evaluation. Arrow hashes the strings; the rest is arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from searcheval import schema
from searcheval.errors import InputError
from searcheval.metrics.lists import UNJUDGED, Judgments, Lists
from searcheval.schema import encode, positions

# Up to this many (query, judged document) cells, grades are looked up in a table; beyond, by bisection.
_TABLE = 64_000_000


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
        document, self._documents = encode(frame["doc_id"])
        document = document.astype(np.int64)
        keep = query >= 0
        query, document, grade = query[keep], document[keep], frame["relevance"].to_numpy()[keep]
        self.judgments = _judgments(len(self.ids), query, grade)
        self._grades = _Grades(query, document, grade, len(self.ids), len(self._documents))

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
        of, rank, grade = np.empty(total, np.int32), np.empty(total, np.int32), np.empty(total, self._grades.dtype)
        # One run after the other, and narrow integers: what is held at once decides the peak of memory.
        for s, (name, run) in enumerate(runs.items()):
            rows, query, ignored = self._rows(run, name)
            document, distinct = encode(rows["doc_id"])
            self._refuse_twice(rows, query, document, len(distinct), name)
            start, stop = stop, stop + len(query)
            grade[start:stop] = self._grades.of(query, positions(distinct, self._documents)[document])
            del document, distinct
            first = np.searchsorted(query, np.arange(n))
            of[start:stop] = query + s * n
            rank[start:stop] = np.arange(1, len(query) + 1) - first[query]
            coded[name] = self._coded(run, query, ignored)
        query = np.tile(np.arange(n), len(runs))
        return Lists(of[:stop], rank[:stop], grade[:stop], query, self.judgments), coded

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

    @staticmethod
    def _refuse_twice(rows: pd.DataFrame, query: np.ndarray, document: np.ndarray, distinct: int, name: str) -> None:
        """A document twice in a list would let nDCG pass 1."""
        twice = pd.Series(query.astype(np.int64) * distinct + document, copy=False).duplicated().to_numpy()
        if twice.any():
            row = rows.iloc[int(np.argmax(twice))]
            found = f"document {row['doc_id']!r} twice for query {row['query_id']!r}"
            raise InputError(name, None, found, "each only once")


class _Grades:
    """Grades by (query, document) code: a table where it is small enough, else sorted keys."""

    def __init__(
        self, query: np.ndarray, document: np.ndarray, grade: np.ndarray, queries: int, documents: int
    ) -> None:
        self._width = documents
        keys = query * documents + document
        if queries * documents <= _TABLE and (grade.max(initial=0) < np.iinfo(np.int8).max):
            # One more than the grade, so that an unjudged cell is a zero: pages of zeros cost no memory until written.
            self._table: np.ndarray | None = np.zeros(queries * documents + 1, dtype=np.int8)
            self._table[keys] = grade - UNJUDGED
            self.dtype = self._table.dtype
        else:
            order = np.argsort(keys)
            self._table, self._keys, self._sorted = None, keys[order], grade[order]
            self.dtype = self._sorted.dtype

    def of(self, query: np.ndarray, document: np.ndarray) -> np.ndarray:
        """Grades of the pairs; -1 where ``document`` is -1 or the pair is not judged."""
        keys = query * self._width + document
        known = document >= 0
        if self._table is not None:
            # The last cell stands for documents that nobody judged.
            return self._table[np.where(known, keys, len(self._table) - 1)] + np.int8(UNJUDGED)
        if not len(self._keys):
            return np.full(len(keys), UNJUDGED)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(known & (self._keys[at] == keys), self._sorted[at], UNJUDGED)


def _judgments(queries: int, query: np.ndarray, grade: np.ndarray) -> Judgments:
    order = np.lexsort((-grade, query))
    of = query[order]
    first = np.searchsorted(of, np.arange(queries))
    place = np.arange(len(of)) - first[of] + 1 if len(of) else of
    return Judgments(queries, of, grade[order], place)
