"""Asking a suite's code systems every query, and keeping what they answered."""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from searcheval import io
from searcheval.dataset import Dataset, Search, load_system, system_stamp
from searcheval.errors import InputError, PartialResult, one_line
from searcheval.io import Path_
from searcheval.progress import progress


@dataclass(frozen=True)
class SystemRecord:
    """How a code system did: one entry of ``systems.json``."""

    status: Literal["ok", "partial", "not_run"]
    reason: str | None
    failed: list[str]
    stamp: str


def run_systems(ds: Dataset, out: Path_) -> dict[str, SystemRecord]:
    """Ask every code system every query; write ``<out>/runs/<system>.jsonl`` and ``<out>/systems.json``.

    An exception fails the query it was raised on; `PartialResult` keeps the list and marks the run *partial*; a factory
    that raises, or a system that raises on every query or never returns anything, was *not run*.

    Parameters
    ----------
    ds : Dataset
    out : path
        A folder; made if it does not exist. Each file takes its place only when whole.

    Returns
    -------
    dict of SystemRecord

    Raises
    ------
    InputError
        If a system's file or factory does not exist.
    """
    out = Path(out)
    records: dict[str, SystemRecord] = {}
    for name in ds.code_systems:
        here = os.getcwd()
        try:
            answers, record = _ask(ds, name)
        finally:
            os.chdir(here)  # a system may have gone elsewhere
        lines = [
            json.dumps({"query_id": q, "results": [{"doc_id": d, "score": s} for d, s in results]}, ensure_ascii=False)
            for q, results in answers.items()
        ]
        io.write_text(out / "runs" / f"{name}.jsonl", "".join(line + "\n" for line in lines))
        records[name] = record
    if records:
        data = {name: asdict(record) for name, record in records.items()}
        io.write_text(out / "systems.json", json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    return records


def _ask(ds: Dataset, name: str) -> tuple[dict[str, list[tuple[str, float]]], SystemRecord]:
    stamp = system_stamp(ds, name)
    try:
        search = load_system(ds, name)
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        return {}, SystemRecord("not_run", f"its factory raised {_said(error)}", ds.queries["query_id"].tolist(), stamp)
    answers: dict[str, list[tuple[str, float]]] = {}
    failed: dict[str, str] = {}
    partial: dict[str, str] = {}
    rows = [row for _, row in ds.queries.iterrows()]
    for query in progress(rows, f"asking {name}", total=len(rows), unit="queries"):
        query_id = query["query_id"]
        try:
            answers[query_id], missing = _answer(search, query, ds.settings.k)
        except (Exception, SystemExit) as error:
            failed[query_id] = _said(error)
            continue
        if missing:
            partial[query_id] = missing
    if not any(answers.values()):
        reason = f"it raised {_first(failed)}" if failed else "it returned nothing for any query"
        return {}, SystemRecord("not_run", reason, list(failed), stamp)
    if partial:
        return answers, SystemRecord("partial", f"{_first(partial)} ({len(partial)} queries)", list(failed), stamp)
    trouble = f"it raised {_first(failed)} ({len(failed)} queries)" if failed else None
    return answers, SystemRecord("ok", trouble, list(failed), stamp)


def _answer(search: Search, query: Any, k: int) -> tuple[list[tuple[str, float]], str | None]:
    """The first ``k`` results and what is missing of them, if anything is.

    Raises
    ------
    TypeError, ValueError
        Failing the query, unless the results are distinct ids with finite scores.
    """
    missing = None
    try:
        results = search(query, k)
    except PartialResult as part:
        results, missing = part.results, _published(part.reason)
    pairs = [(doc_id, float(score)) for doc_id, score in results][:k]
    seen: set[str] = set()
    for doc_id, score in pairs:
        if not isinstance(doc_id, str) or not doc_id:
            raise TypeError(f"doc_id {doc_id!r} is not a non-empty string")
        if doc_id in seen:
            raise ValueError(f"document {doc_id!r} twice")
        if not math.isfinite(score):
            raise ValueError(f"score {score!r} of document {doc_id!r}")
        seen.add(doc_id)
    return pairs, missing


def _said(error: BaseException) -> str:
    return _published(one_line(f"{type(error).__name__}: {error}"))


def _published(text: str) -> str:
    """``text`` without the folders of this machine: reports are published."""
    return re.sub(r"(?<![\w.:/<])/(?:[^\s/'\"]+/)+", "…/", text)


def _first(reasons: dict[str, str]) -> str:
    query_id, reason = next(iter(reasons.items()))
    return f"{reason} on {query_id}"


def trace(ds: Dataset, name: str, query: pd.Series, *, n: int = 5) -> list[tuple[str, pd.DataFrame]]:
    """How a code system came to its list for one query.

    Parameters
    ----------
    ds : Dataset
    name : str
        A code system.
    query : Series
        A row of ``ds.queries``.
    n : int
        Results to show.

    Returns
    -------
    list of (step, table)
        What the system's ``search.explain(query, k)`` tells, if it has one (a list of such pairs), and at the end the
        list itself, ``doc_id, title, score`` by rank, unless the last step showed just that.
    """
    nothing = pd.DataFrame({"doc_id": pd.Series(dtype="str")})
    try:
        search = load_system(ds, name)
        explain = getattr(search, "explain", None)
        told = explain(query, ds.settings.k) if explain else []
        steps = [(step, with_titles(ds, table).head(n)) for step, table in told]
        results, _ = _answer(search, query, ds.settings.k)
    except (Exception, SystemExit) as error:
        return [(f"it raises {_said(error)}", nothing)]
    final = pd.DataFrame(results, columns=["doc_id", "score"], index=pd.RangeIndex(1, len(results) + 1, name="rank"))
    shown = steps[-1][1]["doc_id"].tolist() if steps and "doc_id" in steps[-1][1] else None
    if shown == final["doc_id"].head(n).tolist():
        return steps
    return [*steps, (f"the list it returns ({len(results)} results)", with_titles(ds, final).head(n))]


def with_titles(ds: Dataset, table: pd.DataFrame) -> pd.DataFrame:
    """``table`` with the documents' titles beside their ids, where there are both."""
    if "doc_id" not in table or ds.documents is None or "title" not in ds.documents or "title" in table:
        return table
    titles = table["doc_id"].map(ds.documents.set_index("doc_id")["title"])
    result = table.copy()
    result.insert(table.columns.get_loc("doc_id") + 1, "title", titles)
    return result
