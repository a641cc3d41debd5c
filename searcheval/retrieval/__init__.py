"""Retrieval for a suite's own systems: BM25F, dense vectors and their fusion, on an embedded PostgreSQL.

Names load on first use (PEP 562): importing this package imports neither the database nor the embedding model.

>>> import searcheval.retrieval as sr
>>> sr.reciprocal_rank_fusion([["a"], ["b", "a"]])[0][0]
'a'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "Collection": "collection",
    "seed": "collection",
    "bm25f_score": "bm25f",
    "reciprocal_rank_fusion": "fusion",
    "connect": "postgres",
    "disconnect": "postgres",
}

__all__ = ["Collection", "bm25f_score", "connect", "disconnect", "reciprocal_rank_fusion", "seed"]

if TYPE_CHECKING:
    from searcheval.retrieval.bm25f import bm25f_score
    from searcheval.retrieval.collection import Collection, seed
    from searcheval.retrieval.fusion import reciprocal_rank_fusion
    from searcheval.retrieval.postgres import connect, disconnect


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'searcheval.retrieval' has no attribute {name!r}")
    value = getattr(import_module(f"searcheval.retrieval.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
