"""Ranked lists and judgments as flat integer arrays: what every formula works on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FloatArray = np.ndarray
UNJUDGED = -1


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
        """Sum of ``values``, one a chosen row, over the chosen rows of each list: (L,)."""
        return np.bincount(self.of[rows], weights=values, minlength=len(self)).astype(float)

    def size(self) -> np.ndarray:
        """How many results each list has: integers (L,)."""
        return np.bincount(self.of, minlength=len(self))

    def relevant(self, rel: int) -> FloatArray:
        """How many documents are judged ``rel`` or higher for each list's query: (L,)."""
        return self.judgments.count(rel)[self.query].astype(float)

    def running(self, rows: np.ndarray) -> np.ndarray:
        """How many of the chosen rows stand at or above each row of the same list: integers (rows,)."""
        total = np.cumsum(rows, dtype=np.int32)
        start = np.searchsorted(self.of, np.arange(len(self)))
        before = np.concatenate([[0], total])[start]
        return total - before[self.of]

    def condensed(self) -> Lists:
        """The same lists without unjudged results, ranked anew."""
        keep = self.grade > UNJUDGED
        rank = self.running(keep)
        return Lists(self.of[keep], rank[keep], self.grade[keep], self.query, self.judgments)
