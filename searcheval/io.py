"""Reading and writing queries, documents, qrels and runs in the formats that people have."""

from __future__ import annotations

import csv
import gzip
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, TextIO

import numpy as np
import pandas as pd

from searcheval import schema
from searcheval.errors import InputError, nearest, one_line
from searcheval.schema import Source

Path_ = str | os.PathLike[str]
_CHUNK = 50_000  # lines split at once: bounds the memory of a large TREC file to its columns plus one chunk
_RESULTS = ("results", "hits", "ranking")
_HEADER = {name for names in schema.SYNONYMS.values() for name in names}


def read_queries(path: Path_) -> pd.DataFrame:
    """Queries from JSONL, CSV or TSV with columns ``query_id, text``, or headerless TSV ``id<TAB>text``.

    Returns
    -------
    DataFrame
        ``query_id, text`` and any further columns, as strings or as JSON gave them.

    Raises
    ------
    InputError
        Naming file and line, for anything that is not such a file.
    """
    frame, lines = _read_table(path, headerless=["query_id", "text"])
    return schema.as_queries(frame, name=os.fspath(path), lines=lines)


def read_documents(path: Path_) -> pd.DataFrame:
    """Documents from JSONL, CSV or TSV: ``doc_id``, usually ``title`` and ``text``, and any further fields.

    Raises
    ------
    InputError
        Naming file and line, for anything that is not such a file.
    """
    frame, lines = _read_table(path, headerless=["doc_id", "text"])
    return schema.as_documents(frame, name=os.fspath(path), lines=lines)


def read_qrels(
    path: Path_, *, max_grade: int | None = schema.MAX_GRADE, negative: Literal["error", "zero"] = "error"
) -> pd.DataFrame:
    """Graded judgments from a TREC qrels file, CSV, TSV or JSONL (``.gz`` too).

    Parameters
    ----------
    path : path
        A TREC file has ``query iteration document grade``, separated by blanks or tabs.
    max_grade, negative
        See :func:`searcheval.as_qrels`.

    Returns
    -------
    DataFrame
        ``query_id, doc_id, relevance`` and any further columns.

    Raises
    ------
    InputError
        Naming file and line, for a broken line, a grade off the scale, a pair judged twice, an empty file.
    """
    frame, lines = _judgment_rows(path)
    return schema.as_qrels(frame, name=os.fspath(path), max_grade=max_grade, negative=negative, lines=lines)


def line_of_judgment(path: Path_, row: int) -> int:
    """The line on which row ``row`` of `read_qrels(path)` stands: for errors that only show later."""
    return int(_judgment_rows(path)[1][row])


def _judgment_rows(path: Path_) -> tuple[pd.DataFrame, Any]:
    if _format(path) == "trec":
        return _read_trec(path, ["query_id", "doc_id", "relevance"], [0, 2, 3], 4, "query iteration document grade")
    frame, lines = _read_table(path)
    # BEIR calls the grade "score".
    names = {str(c).lower() for c in frame.columns}
    if "score" in names and not names & set(schema.SYNONYMS["relevance"]):
        frame = frame.rename(columns={c: "relevance" for c in frame.columns if str(c).lower() == "score"})
    return frame, lines


def read_run(
    path: Path_, *, ties: Literal["score", "rank"] = "score", on_duplicate: Literal["error", "first"] = "error"
) -> pd.DataFrame:
    """A system's ranked lists from a TREC run, JSONL, CSV or TSV (``.gz`` too).

    Parameters
    ----------
    path : path
        TREC: ``query Q0 document rank score tag``, ordered as trec_eval does, by score compared as float32, then by
        document id, both descending. JSONL: one query a line with its *ordered* ``results`` (an empty list is an answer
        with nothing), or one pair a line. CSV, TSV and pairs: by ``rank`` if there is one, else by ``score`` in the
        same way, else in the order given.
    ties : {"score", "rank"}
        ``"rank"`` orders a TREC file by its rank column instead.
    on_duplicate : {"error", "first"}
        What to do when a list holds a document twice; ``"first"`` keeps the better rank.

    Returns
    -------
    DataFrame
        ``query_id, doc_id, rank, score``; no rows for an empty file, which is a system that was *not run*.
        ``attrs["answered"]`` lists the queries that a JSONL file answered with nothing.

    Raises
    ------
    InputError
        Naming file and line, for a broken line, a NaN or infinite score, the same document twice for a query.
    """
    kind = _format(path)
    name = os.fspath(path)
    empty: list[str] = []
    lines: Any
    if kind == "trec":
        columns = ["query_id", "doc_id", "rank", "score"]
        frame, lines = _read_trec(path, columns, [0, 2, 3, 4], 6, "query Q0 document rank score tag")
        run = schema.rank_lists(frame, by=ties, source=Source(name, lines), on_duplicate=on_duplicate)
    elif kind == "jsonl":
        frame, lines, by, empty = _run_from_jsonl(path)
        run = schema.rank_lists(frame, by=by, source=Source(name, lines), on_duplicate=on_duplicate)
    else:
        frame, lines = _read_table(path)
        run = schema.as_run(frame, name=name, on_duplicate=on_duplicate, lines=lines)
    run.attrs["answered"] = empty
    return run


def write_run(run: pd.DataFrame, path: Path_, *, tag: str = "searcheval") -> None:
    """Write a run as JSONL, CSV or TSV by the ending of ``path``, else in TREC format; reads back the same.

    A TREC file is read by score, not by rank: where the scores of a list do not fall strictly, the file gets descending
    ranks as scores, so that every reader sees the order that was written.
    """
    ending = _ending(path)
    with atomic(path) as file:
        if ending == "jsonl":
            for query_id, rows in run.groupby("query_id", sort=False):
                results = [
                    {"doc_id": d, "score": _plain(s)} for d, s in zip(rows["doc_id"], rows["score"], strict=True)
                ]
                file.write(json.dumps({"query_id": query_id, "results": results}, ensure_ascii=False) + "\n")
            for query_id in run.attrs.get("answered", []):
                file.write(json.dumps({"query_id": query_id, "results": []}, ensure_ascii=False) + "\n")
        elif ending in ("csv", "tsv"):
            run[schema.RUN].to_csv(file, index=False, sep="," if ending == "csv" else "\t", lineterminator="\n")
        else:
            score = run["score"].to_numpy()
            same = (run["query_id"] == run["query_id"].shift()).to_numpy()
            falls = np.r_[True, np.diff(score.astype("float32")) < 0] | ~same
            if not falls.all() or not np.isfinite(score).all():
                score = -run["rank"].to_numpy(dtype="float64")
            for q, d, r, s in zip(run["query_id"], run["doc_id"], run["rank"], score.tolist(), strict=True):
                file.write(f"{q} Q0 {d} {r} {s!r} {tag}\n")


def write_qrels(qrels: pd.DataFrame, path: Path_) -> None:
    """Write qrels with all their columns as CSV, TSV or JSONL by the ending of ``path``, else in TREC format."""
    ending = _ending(path)
    with atomic(path) as file:
        if ending == "jsonl":
            qrels.to_json(file, orient="records", lines=True, force_ascii=False)
        elif ending in ("csv", "tsv"):
            qrels.to_csv(file, index=False, sep="," if ending == "csv" else "\t", lineterminator="\n")
        else:
            for q, d, grade in zip(qrels["query_id"], qrels["doc_id"], qrels["relevance"], strict=True):
                file.write(f"{q} 0 {d} {grade}\n")


@contextmanager
def atomic(path: Path_) -> Iterator[TextIO]:
    """A text file that takes its place at ``path`` only when it is whole; an error or a full disk leaves the old
    one."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as packed, _text(packed) as file:
                    yield file
            else:
                with _text(raw) as file:
                    yield file
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_text(path: Path_, text: str) -> None:
    """Replace the file at ``path`` by ``text`` (UTF-8), whole or not at all."""
    with atomic(path) as file:
        file.write(text)


def read_json(path: Path_, expected: str) -> dict[str, Any]:
    """A JSON object from a file; ``expected`` says in an error what should have been there."""
    try:
        data = json.loads(_read_text(path, expected))
    except json.JSONDecodeError as error:
        raise InputError(path, error.lineno, f"broken JSON ({error.msg})", expected) from None
    if not isinstance(data, dict):
        raise InputError(path, 1, f"a JSON {type(data).__name__}", expected)
    return data


def trec_kind(path: Path_) -> Literal["qrels", "run"] | None:
    """Whether a headerless text file looks like TREC qrels or a TREC run; None for anything else."""
    try:
        if _format(path) != "trec":
            return None
        with reading(path, "text") as file:
            cells = next((line.split() for line in file if line.strip() and not line.startswith("#")), [])
        number = {4: 3, 6: 4}.get(min(len(cells), 6))
        if number is None or np.isnan(_floats([cells[number]])[0]):
            return None
        return "qrels" if len(cells) == 4 else "run"
    except InputError:
        return None


def _text(raw: Any) -> TextIO:
    import io

    return io.TextIOWrapper(raw, encoding="utf-8", newline="")


def _open(path: Path_) -> IO[str]:
    try:
        if os.fspath(path).endswith(".gz"):
            return gzip.open(path, "rt", encoding="utf-8-sig", newline=None)
        return open(path, encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(path, None, "no such file", _suggestion(path)) from None
    except IsADirectoryError:
        raise InputError(path, None, "a folder", "a file") from None
    except PermissionError:
        raise InputError(path, None, "a file that may not be read", "a readable file") from None


def _suggestion(path: Path_) -> str:
    folder = Path(path).parent
    names = sorted(p.name for p in folder.iterdir() if p.is_file())[:20] if folder.is_dir() else []
    return f"a file; {folder} has {nearest(Path(path).name, names)}" if names else "a file that exists"


@contextmanager
def reading(path: Path_, expected: str) -> Iterator[IO[str]]:
    """An open file whose decoding and unpacking errors become InputErrors."""
    with _open(path) as file:
        try:
            yield file
        except UnicodeDecodeError:
            raise InputError(path, _bad_line(path), "bytes that are not UTF-8", f"{expected}, as UTF-8 text") from None
        except (gzip.BadGzipFile, EOFError) as error:
            raise InputError(path, None, f"a broken gzip file ({error})", expected) from None


def _bad_line(path: Path_) -> int | None:
    """The first line that is not UTF-8."""
    opener: Callable[..., Any] = gzip.open if os.fspath(path).endswith(".gz") else open
    with opener(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return None


def _read_text(path: Path_, expected: str) -> str:
    with reading(path, expected) as file:
        return file.read()


def _ending(path: Path_) -> str:
    name = os.fspath(path).lower().removesuffix(".gz")
    ending = name.rsplit(".", 1)[-1] if "." in os.path.basename(name) else ""
    return {"ndjson": "jsonl"}.get(ending, ending)


def _format(path: Path_) -> Literal["trec", "jsonl", "csv", "tsv"]:
    """By content, with the ending as a hint: a headerless ``.tsv`` of four columns is TREC qrels."""
    ending = _ending(path)
    with reading(path, "a text file") as file:
        first = next((line for line in file if line.strip() and not line.startswith("#")), "")
    if ending == "jsonl" or first.lstrip().startswith("{"):
        return "jsonl"
    names = {n.strip().strip('"').lower() for n in first.replace("\t", ",").replace(";", ",").split(",")}
    if ending in ("csv", "tsv"):
        headerless = len(first.split()) in (4, 6) and not names & _HEADER
        return "trec" if headerless else ending  # type: ignore[return-value]
    if len(names & _HEADER) >= 2:
        return "tsv" if "\t" in first else "csv"
    return "trec"


def _read_table(path: Path_, headerless: list[str] | None = None) -> tuple[pd.DataFrame, list[int]]:
    """Rows of a JSONL, CSV or TSV file with the line each began on."""
    kind = _format(path)
    if kind == "jsonl":
        records = list(_jsonl(path))
        for _, record in records:
            _ids_to_strings(record)
        return pd.DataFrame([r for _, r in records]), [n for n, _ in records]
    with reading(path, "a table") as file:
        head = file.readline()
        file.seek(0)
        separator = "\t" if kind == "tsv" or "\t" in head else ";" if head.count(";") > head.count(",") else ","
        reader = csv.reader(file, delimiter=separator, strict=True)
        rows, lines, last = [], [], 0
        try:
            for row in reader:
                if row:
                    rows.append(row)
                    lines.append(last + 1)
                last = reader.line_num
        except csv.Error as error:
            raise InputError(
                path, reader.line_num, f"a broken row ({error})", "a row of quoted or plain cells"
            ) from None
    if not rows:
        return pd.DataFrame(), []
    header = [h.strip() for h in rows[0]]
    if headerless and kind != "csv" and len(header) == 2 and not {h.lower() for h in header} & _HEADER:
        header, rows, lines = headerless, [headerless, *rows], [0, *lines]
    for line, row in zip(lines, rows, strict=True):
        if len(row) != len(header):
            raise InputError(path, line, f"{len(row)} cells", f"{len(header)}, as in the header ({', '.join(header)})")
    twice = {h for h in header if header.count(h) > 1}
    if twice:
        raise InputError(path, 1, f"column {min(twice)!r} twice", "each column once")
    frame = pd.DataFrame(rows[1:], columns=header, dtype="str")
    return frame, lines[1:]


def _jsonl(path: Path_) -> Iterator[tuple[int, dict[str, Any]]]:
    with reading(path, "one JSON object a line") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line, object_pairs_hook=_unique_keys)
            except json.JSONDecodeError as error:
                raise InputError(path, number, f"broken JSON ({error.msg})", "one JSON object a line") from None
            except (_TwiceError, RecursionError) as error:
                raise InputError(path, number, str(error), "each key once") from None
            if not isinstance(record, dict):
                raise InputError(path, number, one_line(line, 60), "one JSON object a line")
            yield number, record


class _TwiceError(Exception):
    pass


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [k for k, _ in pairs]
        raise _TwiceError(f"key {next(k for k in keys if keys.count(k) > 1)!r} twice")
    return record


def _ids_to_strings(record: dict[str, Any]) -> None:
    """An integer id in JSON has one spelling only, so that nothing is lost in making it a string."""
    for key, value in record.items():
        if type(value) is int and schema._SYNONYM.get(key.lower()) in ("query_id", "doc_id"):
            record[key] = str(value)


def _run_from_jsonl(path: Path_) -> tuple[pd.DataFrame, list[int], str, list[str]]:
    """Both shapes: a query a line with its ordered results, or a pair a line."""
    records = list(_jsonl(path))
    name = os.fspath(path)
    if not records:
        return pd.DataFrame({c: pd.Series(dtype="str") for c in ["query_id", "doc_id"]}), [], "given", []
    shapes = {next((k for k in _RESULTS if k in record), None) for _, record in records}
    if shapes == {None}:
        for _, record in records:
            _ids_to_strings(record)
        frame, numbers = pd.DataFrame([r for _, r in records]), [n for n, _ in records]
        source = Source(name, numbers)
        frame = frame.rename(columns=schema.canonical_columns(frame.columns, schema.RUN, source))
        schema.require(frame, ["query_id", "doc_id"], source)
        by = "rank" if "rank" in frame else "score" if "score" in frame else "given"
        return frame[[c for c in schema.RUN if c in frame]], numbers, by, []
    rows: list[tuple[Any, Any, Any]] = []
    lines: list[int] = []
    empty: list[str] = []
    seen: dict[str, int] = {}
    for number, record in records:
        _ids_to_strings(record)
        source = Source(name, [number])
        key = next((k for k in _RESULTS if k in record), None)
        names = schema.canonical_columns(record, ["query_id"], source)
        query_id = next((record[k] for k, n in names.items() if n == "query_id"), None)
        if not isinstance(query_id, str) or not query_id:
            raise InputError(name, number, "no query_id", 'a "query_id" that is a non-empty string')
        if key is None or not isinstance(record[key], list):
            raise InputError(name, number, f"no list of results for query {query_id!r}", '"results": [...]')
        if query_id in seen:
            raise InputError(
                name, number, f"query_id {query_id!r} again (first on line {seen[query_id]})", "each only once"
            )
        seen[query_id] = number
        if not record[key]:
            empty.append(query_id)
        for place, result in enumerate(record[key], 1):
            rows.append((query_id, *_result(result, f"result {place} of query {query_id!r}", name, number)))
            lines.append(number)
    frame = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    scored = [score is not None for _, _, score in rows]
    if any(scored) and not all(scored):
        at = scored.index(False)
        raise InputError(
            name, lines[at], f"document {rows[at][1]!r} without a score", "a score for every result or for none"
        )
    if not any(scored):
        frame = frame.drop(columns="score")
    return frame, lines, "given", empty


def _result(result: Any, what: str, name: str, number: int) -> tuple[str, Any]:
    """The id and score (None where there is none) of one element of a list of results."""
    if isinstance(result, dict):
        names = schema.canonical_columns(result, ["doc_id", "score"], Source(name, [number]))
        found = {n: result[k] for k, n in names.items()}
        doc_id, score = found.get("doc_id"), found.get("score")
    elif isinstance(result, list) and len(result) == 2:
        doc_id, score = result
    else:
        doc_id, score = result, None
    if type(doc_id) is int:
        doc_id = str(doc_id)
    if not isinstance(doc_id, str) or not doc_id:
        raise InputError(name, number, f"{what} without a doc_id", 'an id, or {"doc_id": ..., "score": ...}')
    if score is not None and (isinstance(score, bool) or not isinstance(score, (int, float)) or not np.isfinite(score)):
        raise InputError(name, number, f"score {score!r} in {what}", "a finite number as score")
    return doc_id, None if score is None else float(score)


def _read_trec(
    path: Path_, columns: list[str], places: list[int], least: int, expected: str
) -> tuple[pd.DataFrame, np.ndarray]:
    """The named columns of a blank-separated file. Ids are shared where they repeat, so that memory stays small."""
    known: dict[str, str] = {}
    parts: dict[str, list[np.ndarray]] = {c: [] for c in columns}
    lines: list[np.ndarray] = []
    number = 0
    with reading(path, expected) as file:
        while chunk := list(islice(file, _CHUNK)):
            split = [line.split(None, least) for line in chunk]
            keep = [i for i, cells in enumerate(split) if cells and not cells[0].startswith("#")]
            short = next((i for i in keep if len(split[i]) < least), None)
            if short is not None:
                found = f"{len(split[short])} columns ({one_line(chunk[short], 60)})"
                raise InputError(path, number + short + 1, found, f"{least} columns: {expected}")
            for column, place in zip(columns, places, strict=True):
                cells = [split[i][place] for i in keep]
                if column in ("rank", "score", "relevance"):
                    parts[column].append(_floats(cells))
                else:
                    parts[column].append(np.array([known.setdefault(c, c) for c in cells], dtype=object))
                bad = np.isnan(parts[column][-1]) if column in ("rank", "score", "relevance") else np.zeros(0, bool)
                if bad.any():
                    row = int(np.argmax(bad))
                    what = "a whole number" if column == "relevance" else "a finite number"
                    raise InputError(path, number + keep[row] + 1, f"{column} {cells[row]!r}", f"{what} as {column}")
            lines.append(np.array(keep, dtype=np.int64) + number + 1)
            number += len(chunk)
    data = {c: np.concatenate(p) if p else np.array([], dtype=object) for c, p in parts.items()}
    return pd.DataFrame(data), np.concatenate(lines) if lines else np.array([], dtype=np.int64)


def _floats(cells: list[str]) -> np.ndarray:
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return pd.to_numeric(pd.Series(cells, dtype="str"), errors="coerce").to_numpy(dtype="float64")


def _plain(score: float) -> float | None:
    return None if score != score else float(score)
