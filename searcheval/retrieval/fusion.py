"""Fusing ranked lists by rank alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any


def reciprocal_rank_fusion(
    lists: Sequence[Sequence[str]],
    k: int = 60,
    *,
    tie_break: Callable[[str], Any] | None = None,
    depth: int | None = None,
) -> list[tuple[str, float]]:
    """Merge ranked lists: a document scores the sum of ``1 / (k + rank)`` over the lists that hold it.

    Sums are compared as exact fractions, so a tie is a tie whatever the order of the lists.

    Parameters
    ----------
    lists : sequence of sequences of doc_id
        Best first; ranks count from 1. An empty list adds nothing.
    k : int, default 60
        How little the first ranks stand out.
    tie_break : callable, optional
        Key of a document among those with an equal sum: *smaller comes first*. ``lambda d: -settled[d]`` puts the
        largest first, a tuple adds a second criterion. Documents that are still equal come by doc_id, ascending.
    depth : int, optional
        Take only the first so many of each list; all by default.

    Returns
    -------
    list of (doc_id, score)
        Every document of any list, best first.

    Raises
    ------
    ValueError
        If a list holds a document twice.

    References
    ----------
    Cormack, Clarke, Buettcher (2009), "Reciprocal rank fusion outperforms Condorcet and individual rank learning
    methods", SIGIR.

    Examples
    --------
    >>> fused = reciprocal_rank_fusion([["a", "b", "c"], ["b", "d", "a"]])
    >>> [(doc_id, round(score, 6)) for doc_id, score in fused]
    [('b', 0.032522), ('a', 0.032266), ('d', 0.016129), ('c', 0.015873)]
    """
    sums: defaultdict[str, Fraction] = defaultdict(Fraction)
    for ranked in lists:
        if len(set(ranked)) < len(ranked):
            twice = next(d for i, d in enumerate(ranked) if d in ranked[:i])
            raise ValueError(f"document {twice!r} is twice in one list")
        for rank, doc_id in enumerate(ranked[:depth], start=1):
            sums[doc_id] += Fraction(1, k + rank)
    key = tie_break or (lambda _: 0)
    order = sorted(sums, key=lambda d: (-sums[d], key(d), d))
    return [(doc_id, float(sums[doc_id])) for doc_id in order]
