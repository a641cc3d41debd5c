"""What people call: read_queries, read_documents, read_qrels, read_run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import pandas as pd

from searcheval import schema
from searcheval.errors import InputError
from searcheval.io import results, trec
from searcheval.io.files import Path_, read_json, sniff
from searcheval.io.tables import jsonl, read_table
from searcheval.schema import Source

_QRELS = {"query_id": 0, "doc_id": 2, "relevance": 3}
_RUN = {"query_id": 0, "doc_id": 2, "rank": 3, "score": 4}


def read_queries(path: Path_) -> pd.DataFrame:
    """Queries from JSONL, CSV, TSV or Parquet with columns ``query_id, text``, or headerless TSV ``id<TAB>text``.

    Returns
    -------
    DataFrame
        ``query_id, text`` and any further columns, as strings or as JSON gave them.

    Raises
    ------
    InputError
        Naming file and line, for anything that is not such a file.
    """
    frame, lines = read_table(path, headerless=["query_id", "text"])
    return schema.as_queries(frame, name=os.fspath(path), lines=lines)


def read_documents(path: Path_) -> pd.DataFrame:
    """Documents from JSONL, CSV, TSV or Parquet: ``doc_id``, usually ``title`` and ``text``, and any further fields.

    Raises
    ------
    InputError
        Naming file and line, for anything that is not such a file.
    """
    frame, lines = read_table(path, headerless=["doc_id", "text"])
    return schema.as_documents(frame, name=os.fspath(path), lines=lines)


@schema.lean_memory(release=True)
def read_qrels(
    path: Path_,
    *,
    max_grade: int | None = schema.MAX_GRADE,
    negative: Literal["error", "zero"] = "error",
    queries: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Graded judgments from a TREC qrels file, CSV, TSV, JSONL, Parquet or nested JSON (text may be gzipped).

    Parameters
    ----------
    path : path
        A TREC file has ``query iteration document grade``, separated by blanks or tabs. Quepid's CSV names a query by
        its text; its rows without a rating are not judgments and are passed over.
    max_grade, negative
        See :func:`searcheval.as_qrels`.
    queries : DataFrame, optional
        ``query_id, text``: turns the query texts of Quepid's CSV into ids. Without it the text is the id.

    Returns
    -------
    DataFrame
        ``query_id, doc_id, relevance`` and any further columns.

    Raises
    ------
    InputError
        Naming file and line, for a broken line, a grade off the scale, a pair judged twice, an empty file.
    """
    frame, lines = _judgment_rows(path, queries)
    return schema.as_qrels(frame, name=os.fspath(path), max_grade=max_grade, negative=negative, lines=lines)


def line_of_judgment(path: Path_, row: int, queries: pd.DataFrame | None = None) -> int | None:
    """The line on which row ``row`` of `read_qrels(path)` stands: for errors that only show later."""
    lines = _judgment_rows(path, queries)[1]
    return None if lines is None else lines(row)


@schema.lean_memory(release=True)
def read_run(
    path: Path_, *, ties: Literal["score", "rank"] = "score", on_duplicate: Literal["error", "first"] = "error"
) -> pd.DataFrame:
    """A system's ranked lists from a TREC run, JSONL, CSV, TSV, Parquet or JSON (text may be gzipped).

    Parameters
    ----------
    path : path
        TREC: ``query Q0 document rank score tag``, ordered as trec_eval does, by score compared as float32, then by
        document id, both descending. JSONL: one query a line with its *ordered* ``results`` (an empty list is an answer
        with nothing) or with an Elasticsearch or OpenSearch response (``hits.hits``), or one pair a line. JSON:
        ``{query: {document: score}}`` or ``{query: response}``. A folder: one response a query, ``q1.json``. CSV, TSV,
        Parquet and pairs: by ``rank`` if there is one, else by ``score`` in the same way, else in the order given.
    ties : {"score", "rank"}
        ``"rank"`` orders a TREC file by its rank column instead.
    on_duplicate : {"error", "first"}
        What to do when a list holds a document twice; ``"first"`` keeps the better rank.

    Returns
    -------
    DataFrame
        ``query_id, doc_id, rank, score``; no rows for an empty file, which is a system that was *not run*.
        ``attrs["answered"]`` lists the queries that were answered with nothing.

    Raises
    ------
    InputError
        Naming file and line, for a broken line, a NaN or infinite score, the same document twice for a query.
    """
    name = os.fspath(path)
    answered: list[str] = []
    lines: Any = None
    kind = "folder" if os.path.isdir(path) else sniff(path)
    if kind == "trec":
        unused = None if ties == "rank" else "rank"
        frame, lines = trec.read_trec(path, _RUN, 6, "query Q0 document rank score tag", drop=unused)
        by: str = ties
    elif kind == "jsonl":
        frame, lines, by, answered = results.from_jsonl(path)
    elif kind == "json":
        frame, by, answered = results.from_json(path)
    elif kind == "folder":
        frame, answered = results.from_folder(path)
        by = "given"
    else:
        frame, lines = read_table(path)
        run = schema.as_run(frame, name=name, on_duplicate=on_duplicate, lines=lines)
        run.attrs["answered"] = answered
        return run
    run = schema.rank_lists(frame, by=by, source=Source(name, lines), on_duplicate=on_duplicate)
    run.attrs["answered"] = answered
    return run


def kind_of(path: Path_) -> Literal["qrels", "run"] | None:
    """Whether a file looks like qrels or a run: by its columns, or by the keys of its first line; None for neither."""
    try:
        kind = sniff(path)
        if kind in ("csv", "tsv", "parquet"):
            return _kind_of_columns(read_table(path)[0].columns)
        if kind == "jsonl":
            record = next(jsonl(path), (0, {}))[1]
            listed = any(key in record for key in ("results", "hits", "ranking", "response"))
            return "run" if listed else _kind_of_columns(record)
        if kind == "json":
            return None
        cells = trec.first_cells(path)
    except InputError:
        return None
    number = {4: 3, 6: 4}.get(min(len(cells), 6))
    if number is None or np.isnan(pd.to_numeric(cells[number], errors="coerce")):
        return None
    return "qrels" if len(cells) == 4 else "run"


def _kind_of_columns(columns: Iterable[Any]) -> Literal["qrels", "run"] | None:
    meant = {schema.SYNONYM.get(str(c).strip().lower()) for c in columns}
    if not {"query_id", "doc_id"} <= meant:
        return None
    return "qrels" if "relevance" in meant else "run" if meant & {"rank", "score"} else None


def _judgment_rows(path: Path_, queries: pd.DataFrame | None) -> tuple[pd.DataFrame, Any]:
    kind = sniff(path)
    name = os.fspath(path)
    if kind == "trec":
        return trec.read_trec(path, _QRELS, 4, "query iteration document grade")
    if kind == "json":
        data = read_json(path, "{query: {document: grade}}")
        return schema.nested(data, "relevance", Source(name)), None
    frame, lines = read_table(path)
    names = {str(c).strip().lower(): c for c in frame.columns}
    # BEIR calls the grade "score".
    if "score" in names and not set(names) & set(schema.SYNONYMS["relevance"]):
        frame = frame.rename(columns={names["score"]: "relevance"})
    text = next((names[c] for c in ("query", "query text", "query_text") if c in names), None)
    if text is not None and not set(names) & set(schema.SYNONYMS["query_id"]):
        return _from_quepid(frame, text, lines, name, queries)
    return frame, lines


def _from_quepid(
    frame: pd.DataFrame, text: Any, lines: Any, name: str, queries: pd.DataFrame | None
) -> tuple[pd.DataFrame, Any]:
    spoken = {"doc id": "doc_id", "docid": "doc_id", "rating": "relevance"}
    frame = frame.rename(columns={c: spoken[str(c).strip().lower()] for c in frame if str(c).strip().lower() in spoken})
    schema.require(frame, ["doc_id", "relevance"], Source(name, lines))
    rows = np.flatnonzero(frame["relevance"].fillna("").astype(str).str.strip() != "")
    frame = frame.iloc[rows].rename(columns={text: "query_id"}).reset_index(drop=True)
    if queries is not None:
        ids = dict(zip(queries["text"], queries["query_id"], strict=True))
        known = frame["query_id"].isin(ids)
        if not known.all():
            row = int(np.argmin(known))
            line = None if lines is None else lines(int(rows[row]))
            raise InputError(name, line, f"query {frame['query_id'].iloc[row]!r}", "the text of a query of this suite")
        frame["query_id"] = frame["query_id"].map(ids)
    return frame, None if lines is None else lambda row: lines(int(rows[row]))
