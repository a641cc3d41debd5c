"""Runs as JSON: a query a line with its ordered results, saved search responses, and nested dicts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from searcheval import schema
from searcheval.errors import InputError
from searcheval.io.files import Path_, read_json
from searcheval.io.tables import ids_to_strings, jsonl
from searcheval.io.trec import Lines
from searcheval.schema import Source

_RESULTS = ("results", "hits", "ranking")
_RESPONSE = "an Elasticsearch or OpenSearch response with `hits.hits`"


class Results:
    """Rows of a run collected list by list, in the order given."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.columns: list[pd.DataFrame] = []
        self.lines: list[int] = []
        self.answered: list[str] = []  # with nothing
        self.seen: dict[str, int | None] = {}

    def add(self, query_id: str, results: list[Any], line: int | None) -> None:
        """One query's ordered results; each an id, ``[id, score]``, or an object with ``doc_id`` and ``score``."""
        if query_id in self.seen:
            raise InputError(
                self.name, line, f"query_id {query_id!r} again{_at(self.seen[query_id])}", "each only once"
            )
        self.seen[query_id] = line
        if not results:
            self.answered.append(query_id)
            return
        rows = [
            _result(r, f"result {place} of query {query_id!r}", self.name, line) for place, r in enumerate(results, 1)
        ]
        scored = [score is not None for _, score in rows]
        if any(scored) and not all(scored):
            found = f"document {rows[scored.index(False)][0]!r} without a score"
            raise InputError(self.name, line, found, "a score for every result or for none")
        frame = pd.DataFrame({"doc_id": pd.Series([d for d, _ in rows], dtype="str")})
        frame["score"] = [np.nan if s is None else s for _, s in rows]
        frame.insert(0, "query_id", pd.Series([query_id] * len(rows), dtype="str"))
        self.columns.append(frame)
        self.lines += [line or 0] * len(rows)

    def frame(self) -> tuple[pd.DataFrame, Lines | None]:
        """All rows, and the line of each if there are lines."""
        if not self.columns:
            empty = pd.DataFrame({"query_id": pd.Series(dtype="str"), "doc_id": pd.Series(dtype="str")})
            return empty, None
        frame = pd.concat(self.columns, ignore_index=True)
        unscored = frame["score"].isna()
        if unscored.any() and not unscored.all():
            row = int(np.argmax(unscored))
            found = f"document {frame['doc_id'].iloc[row]!r} without a score"
            raise InputError(self.name, self.lines[row] or None, found, "a score for every result or for none")
        rows = frame.drop(columns="score") if unscored.all() else frame
        return rows, self.lines.__getitem__ if any(self.lines) else None


def from_jsonl(path: Path_) -> tuple[pd.DataFrame, Lines | None, str, list[str]]:
    """Both shapes: a query a line with its ordered results, or a pair a line.

    Returns
    -------
    frame, lines, by, answered
        ``by`` is what ranks the rows; ``answered`` lists the queries answered with nothing.
    """
    name = os.fspath(path)
    records = jsonl(path)
    first = next(records, None)
    if first is None or _list_of(first[1]) is not None or any(k in first[1] for k in _RESULTS):
        results = Results(name)
        for number, record in _again(first, records):
            query_id = _query_id(record, name, number)
            found = _list_of(record)
            if found is None:
                raise InputError(name, number, f"no list of results for query {query_id!r}", '"results": [...]')
            results.add(query_id, found, number)
        return *results.frame(), "given", results.answered
    pairs = _Pairs(name)
    for number, record in _again(first, records):
        pairs.add(number, record)
    return *pairs.frame(), []


def from_json(path: Path_) -> tuple[pd.DataFrame, str, list[str]]:
    """The nested dict of ranx and ir-measures, ``{query: {document: score}}``, or ``{query: response}``."""
    name = os.fspath(path)
    data = read_json(path, "{query: {document: score}}, or {query: response}")
    if all(_list_of(value) is not None for value in data.values()):
        results = Results(name)
        for query_id, value in data.items():
            results.add(query_id, _list_of(value) or [], None)
        return results.frame()[0], "given", results.answered
    frame = schema.nested(data, "score", Source(name))
    return frame, "score", [q for q, value in data.items() if not value]


def from_folder(path: Path_) -> tuple[pd.DataFrame, list[str]]:
    """A folder of saved responses, one a query, each named by its query: ``q1.json``."""
    results = Results(os.fspath(path))
    files = sorted(Path(path).glob("*.json"))
    if not files:
        raise InputError(
            path, None, "a folder without .json files", "a run file, or a folder of responses, one a query"
        )
    for file in files:
        found = _list_of(read_json(file, _RESPONSE))
        if found is None:
            raise InputError(file, None, "no `hits.hits`", _RESPONSE)
        results.name = os.fspath(file)
        results.add(file.stem, found, None)
    return results.frame()[0], results.answered


class _Pairs:
    """A pair a line; columns rather than records are kept, so that memory stays small."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[int] = []
        self.columns: dict[str, list[Any]] = {}

    def add(self, number: int, record: dict[str, Any]) -> None:
        source = Source(self.name, [number])
        names = schema.canonical_columns(record, schema.RUN, source)
        found = {n: record[k] for k, n in names.items()}
        for column in self.columns or found:
            if column not in found:
                raise source.error(
                    0, f"no {column} on this line", f"the keys of the first line ({', '.join(self.columns)})"
                )
            self.columns.setdefault(column, []).append(found[column])
        self.lines.append(number)

    def frame(self) -> tuple[pd.DataFrame, Lines, str]:
        frame = pd.DataFrame(self.columns)
        schema.require(frame, ["query_id", "doc_id"], Source(self.name, self.lines))
        by = "rank" if "rank" in frame else "score" if "score" in frame else "given"
        return frame, self.lines.__getitem__, by


def _again(first: Any, rest: Iterator[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    if first is not None:
        yield first
    yield from rest


def _list_of(record: Any) -> list[Any] | None:
    """The ordered results in a record: a list, a ``results`` key, or the hits of a search response."""
    if isinstance(record, list):
        return record
    if not isinstance(record, dict):
        return None
    record = record.get("response", record) if isinstance(record.get("response"), dict) else record
    found = next((record[k] for k in _RESULTS if k in record), None)
    if isinstance(found, dict):
        found = found.get("hits")
    return found if isinstance(found, list) else None


def _query_id(record: dict[str, Any], name: str, number: int) -> str:
    names = schema.canonical_columns(record, ["query_id"], Source(name, [number]))
    query_id = next((record[k] for k, n in names.items() if n == "query_id"), None)
    if not isinstance(query_id, str) or not query_id:
        raise InputError(name, number, "no query_id", 'a "query_id" that is a non-empty string')
    return query_id


def _result(result: Any, what: str, name: str, line: int | None) -> tuple[str, float | None]:
    """The id and score (None where there is none) of one element of a list of results."""
    if isinstance(result, dict):
        names = schema.canonical_columns(ids_to_strings(result), ["doc_id", "score"], Source(name, None))
        found = {n: result[k] for k, n in names.items()}
        # Elasticsearch's names; its score is null where the response is sorted by something else.
        doc_id, score = found.get("doc_id", result.get("_id")), found.get("score", result.get("_score"))
    elif isinstance(result, list) and len(result) == 2:
        doc_id, score = result
    else:
        doc_id, score = result, None
    if type(doc_id) is int:
        doc_id = str(doc_id)
    if not isinstance(doc_id, str) or not doc_id:
        raise InputError(name, line, f"{what} without a doc_id", 'an id, or {"doc_id": ..., "score": ...}')
    if score is not None and (isinstance(score, bool) or not isinstance(score, (int, float)) or not np.isfinite(score)):
        raise InputError(name, line, f"score {score!r} in {what}", "a finite number as score")
    return doc_id, None if score is None else float(score)


def _at(line: int | None) -> str:
    return "" if line is None else f" (first on line {line})"
