"""How alike two ranked lists are, without any judgment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import pandas as pd

from searcheval import schema


def overlap(
    runs: Mapping[str, pd.DataFrame],
    *,
    queries: pd.DataFrame | Iterable[str] | None = None,
    k: int = 10,
    p: float = 0.9,
) -> pd.DataFrame:
    """Likeness of every two systems' lists, query by query.

    Parameters
    ----------
    runs : dict of DataFrame
        Runs by system.
    queries : DataFrame with ``query_id``, or ids; default all queries of the runs
    k : int
        Depth of Jaccard's index.
    p : float
        How patient rank-biased overlap's reader is: with 0.9 the first ten ranks carry 86% of the weight.

    Returns
    -------
    DataFrame
        A row a pair of systems and query: ``a, b, query_id``, ``jaccard`` (of the two top ``k``) and ``rbo``
        (extrapolated rank-biased overlap of the whole lists). Both are 1 where both lists are empty, 0 where one is.

    References
    ----------
    Webber, Moffat and Zobel 2010, "A similarity measure for indefinite rankings", ACM TOIS 28(4), equation 32.

    Examples
    --------
    >>> old = schema.as_run({"q": {"a": 2.0, "b": 1.0}})
    >>> new = schema.as_run({"q": {"b": 2.0, "c": 1.0}})
    >>> overlap({"old": old, "new": new}, k=2).round(3).iloc[0].to_dict()
    {'a': 'old', 'b': 'new', 'query_id': 'q', 'jaccard': 0.333, 'rbo': 0.45}
    """
    if not 0 < p < 1:
        raise ValueError(f"p={p}: the patience must lie between 0 and 1")
    lists = {name: _lists(run) for name, run in runs.items()}
    if queries is None:
        ids = list(dict.fromkeys(q for held in lists.values() for q in held))
    else:
        ids = list(queries["query_id"] if isinstance(queries, pd.DataFrame) else queries)
    rows = []
    for a, b in combinations(lists, 2):
        for query_id in ids:
            one, other = lists[a].get(query_id, []), lists[b].get(query_id, [])
            rows.append((a, b, query_id, jaccard(one[:k], other[:k]), rank_biased_overlap(one, other, p)))
    return pd.DataFrame(rows, columns=["a", "b", "query_id", "jaccard", "rbo"])


def jaccard(one: Sequence[str], other: Sequence[str]) -> float:
    """Shared documents over all documents of two lists; 1 for two empty ones.

    >>> jaccard(["a", "b"], ["b", "c"])
    0.3333333333333333
    """
    union = set(one) | set(other)
    return len(set(one) & set(other)) / len(union) if union else 1.0


def rank_biased_overlap(one: Sequence[str], other: Sequence[str], p: float) -> float:
    """Extrapolated rank-biased overlap of two lists without duplicates, of any lengths (Webber et al. 2010, eq. 32).

    The agreement at each depth, weighted by ``p`` to the depth; what they agree on at their ends is taken to go on.

    >>> rank_biased_overlap(["a", "b"], ["a", "b"], 0.9)
    1.0
    """
    short, long = sorted((one, other), key=len)
    if not short:
        return 1.0 if not long else 0.0
    seen_short: set[str] = set()
    seen_long: set[str] = set()
    shared, shared_at_short, total = 0, 0, 0.0
    for depth, document in enumerate(long, 1):
        seen_long.add(document)
        if depth <= len(short):
            other_document = short[depth - 1]
            seen_short.add(other_document)
            shared += (document in seen_short) + (other_document in seen_long) - (document == other_document)
            shared_at_short = shared
            agreement = shared / depth
        else:
            shared += document in seen_short
            agreement = (shared + shared_at_short * (depth - len(short)) / len(short)) / depth
        total += agreement * p**depth
    tail = (shared - shared_at_short) / len(long) + shared_at_short / len(short)
    return min((1 - p) / p * total + tail * p ** len(long), 1.0)


def _lists(run: pd.DataFrame) -> dict[str, list[str]]:
    frame = run if "rank" in run else schema.as_run(run)
    ordered = frame.sort_values("rank", kind="stable")
    return {str(q): docs.tolist() for q, docs in ordered.groupby("query_id", sort=False)["doc_id"]}
