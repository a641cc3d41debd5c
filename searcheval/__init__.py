"""searcheval: is the new search system better, and how sure are we?

Names load on first use (PEP 562), so that scoring two TREC runs imports no database, no embedding model and no plots.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "InputError": "errors",
    "PartialResult": "errors",
    "Dataset": "dataset",
    "load_dataset": "dataset",
    "load_runs": "dataset",
    "load_labels": "dataset",
    "read_queries": "io",
    "read_documents": "io",
    "read_qrels": "io",
    "read_run": "io",
    "write_run": "io",
    "write_qrels": "io",
    "write_queries": "io",
    "write_documents": "io",
    "as_run": "schema",
    "as_qrels": "schema",
    "Conventions": "metrics",
    "Measure": "metrics",
    "parse_measure": "metrics",
    "evaluate": "metrics",
    "answerable": "metrics",
    "overlap": "metrics",
    "crosscheck": "crosscheck",
    "coverage": "coverage",
    "coverage_notes": "coverage",
    "means": "compare",
    "by_segment": "compare",
    "differences": "compare",
    "findings": "compare",
    "most_disputed": "compare",
    "worst_queries": "compare",
    "run_systems": "retrieval.systems",
    "trace": "retrieval.systems",
    "load_system": "dataset",
    "write_report": "report",
    "gate": "gate",
    "accept": "gate",
    "run_suite": "runner",
}
_MODULES = {"plots", "publish", "report", "retrieval", "embed", "text", "metrics", "compare"}

__all__ = ["__version__", *sorted(_HOME)]

if TYPE_CHECKING:
    from searcheval.compare import by_segment, differences, findings, means, most_disputed, worst_queries
    from searcheval.coverage import coverage, coverage_notes
    from searcheval.crosscheck import crosscheck
    from searcheval.dataset import Dataset, load_dataset, load_labels, load_runs, load_system
    from searcheval.errors import InputError, PartialResult
    from searcheval.gate import accept, gate
    from searcheval.io import (
        read_documents,
        read_qrels,
        read_queries,
        read_run,
        write_documents,
        write_qrels,
        write_queries,
        write_run,
    )
    from searcheval.metrics import Conventions, Measure, answerable, evaluate, overlap, parse_measure
    from searcheval.report import write_report
    from searcheval.retrieval.systems import run_systems, trace
    from searcheval.runner import run_suite
    from searcheval.schema import as_qrels, as_run


class _Package(ModuleType):
    """Keeps `searcheval.coverage` the function: importing a submodule of the same name would put the module there."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and name in _HOME:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"searcheval.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f"searcheval.{name}")
    raise AttributeError(f"module 'searcheval' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
