"""What people call: write_run, write_qrels, write_queries, write_documents. What is written reads back identically."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from searcheval import schema
from searcheval.errors import InputError
from searcheval.io.files import Path_, atomic, ending


def write_run(run: pd.DataFrame, path: Path_, *, tag: str = "searcheval") -> None:
    """Write a run as JSONL, CSV, TSV or Parquet by the ending of ``path`` (``.gz`` packs text), else in TREC format.

    A TREC file is read by score, not by rank: where the scores of a list do not fall strictly, the file gets the
    negated ranks as scores, so that every reader sees the order that was written.

    Raises
    ------
    InputError
        For an id with a blank in it, which TREC's format cannot hold.
    """
    kind = ending(path)
    if kind in ("csv", "tsv", "parquet"):
        _write_table(run[schema.RUN], path, kind)
        return
    with atomic(path) as file:
        if kind == "jsonl":
            for query_id, rows in run.groupby("query_id", sort=False):
                scores = rows["score"].tolist()
                scored = not any(s != s for s in scores)
                results: list[Any] = [
                    {"doc_id": d, "score": s} if scored else {"doc_id": d}
                    for d, s in zip(rows["doc_id"], scores, strict=True)
                ]
                file.write(json.dumps({"query_id": query_id, "results": results}, ensure_ascii=False) + "\n")
            for query_id in run.attrs.get("answered", []):
                file.write(json.dumps({"query_id": query_id, "results": []}, ensure_ascii=False) + "\n")
            return
        _refuse_blanks(run, path)
        score = run["score"].to_numpy()
        same = (run["query_id"] == run["query_id"].shift()).to_numpy(dtype=bool, na_value=False)
        falls = np.r_[True, np.diff(score.astype("float32")) < 0] | ~same if len(run) else np.array([], bool)
        if not falls.all() or not np.isfinite(score).all():
            score = -run["rank"].to_numpy(dtype="float64")
        for q, d, r, s in zip(run["query_id"], run["doc_id"], run["rank"], score.tolist(), strict=True):
            file.write(f"{q} Q0 {d} {r} {s!r} {tag}\n")


def write_qrels(qrels: pd.DataFrame, path: Path_) -> None:
    """Write qrels with all their columns as CSV, TSV, JSONL or Parquet by ``path``'s ending, else in TREC format."""
    if ending(path) in ("csv", "tsv", "jsonl", "parquet"):
        _write_table(qrels, path, ending(path))
        return
    _refuse_blanks(qrels, path)
    with atomic(path) as file:
        for q, d, grade in zip(qrels["query_id"], qrels["doc_id"], qrels["relevance"], strict=True):
            file.write(f"{q} 0 {d} {grade}\n")


def write_queries(queries: pd.DataFrame, path: Path_) -> None:
    """Write queries as JSONL, CSV, TSV or Parquet by the ending of ``path``."""
    _write_table(queries, path, ending(path))


def write_documents(documents: pd.DataFrame, path: Path_) -> None:
    """Write documents as JSONL, CSV, TSV or Parquet by the ending of ``path``; lists and numbers survive in JSONL."""
    _write_table(documents, path, ending(path))


def _write_table(frame: pd.DataFrame, path: Path_, kind: str) -> None:
    if kind == "parquet":
        with atomic(path, "binary") as file:
            frame.to_parquet(file, index=False)
    elif kind == "jsonl":
        with atomic(path) as file:
            for record in frame.to_dict("records"):
                file.write(json.dumps({k: _plain(v) for k, v in record.items()}, ensure_ascii=False) + "\n")
    elif kind in ("csv", "tsv"):
        with atomic(path) as file:
            frame.to_csv(file, index=False, sep="," if kind == "csv" else "\t", lineterminator="\n")
    else:
        raise InputError(path, None, f"the ending {kind!r}", "one of .jsonl, .csv, .tsv, .parquet")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return None if value is pd.NA or (isinstance(value, float) and value != value) else value


def _refuse_blanks(frame: pd.DataFrame, path: Path_) -> None:
    for column in ("query_id", "doc_id"):
        blank = frame[column].str.contains(r"\s", regex=True)
        if blank.any():
            value = frame.loc[blank, column].iloc[0]
            raise InputError(
                path, None, f"{column} {value!r}", "an id without blanks in a TREC file; .jsonl and .csv hold any"
            )
