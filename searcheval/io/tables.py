"""Tables: CSV and TSV with a header, JSON Lines, Parquet. Every row knows its line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pc

from searcheval import schema
from searcheval.errors import InputError, one_line
from searcheval.io.files import Path_, TwiceError, read_bytes, reading, sniff, unique_keys
from searcheval.io.trec import Lines

_HEADER = {name for names in schema.SYNONYMS.values() for name in names}


def read_table(path: Path_, headerless: list[str] | None = None) -> tuple[pd.DataFrame, Lines | None]:
    """Rows of a JSONL, CSV, TSV or Parquet file, and the line each began on (None where there are no lines).

    Parameters
    ----------
    path : path
    headerless : list of str, optional
        Names for the two columns of a TSV file without a header.
    """
    kind = sniff(path)
    if kind == "parquet":
        return _parquet(path), None
    if kind == "json":
        raise InputError(path, 1, "one JSON object over the whole file", "one JSON object a line, CSV or TSV")
    if kind == "jsonl":
        records = list(jsonl(path))
        return pd.DataFrame([r for _, r in records]), [n for n, _ in records].__getitem__
    header, separator = _header(path, kind)
    if headerless and kind != "csv" and len(header) == 2 and not {h.lower() for h in header} & _HEADER:
        return _csv(path, headerless, separator, skip=0)
    if len(set(header)) < len(header):
        twice = next(h for h in header if header.count(h) > 1)
        raise InputError(path, 1, f"column {twice!r} twice", "each column once")
    return _csv(path, header, separator, skip=1)


def jsonl(path: Path_) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each line's number and object; integer ids become strings, which loses nothing."""
    with reading(path, "one JSON object a line") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line, object_pairs_hook=unique_keys)
            except json.JSONDecodeError as error:
                raise InputError(path, number, f"broken JSON ({error.msg})", "one JSON object a line") from None
            except (TwiceError, RecursionError) as error:
                raise InputError(path, number, str(error), "each key once") from None
            if not isinstance(record, dict):
                raise InputError(path, number, one_line(line, 60), "one JSON object a line")
            yield number, ids_to_strings(record)


def ids_to_strings(record: dict[str, Any]) -> dict[str, Any]:
    """An integer id in JSON has one spelling only, so that nothing is lost in making it a string."""
    for key, value in record.items():
        if type(value) is int and schema.SYNONYM.get(key.lower()) in ("query_id", "doc_id"):
            record[key] = str(value)
    return record


def _header(path: Path_, kind: str) -> tuple[list[str], str]:
    with reading(path, "a table") as file:
        head = next((line for line in file if line.strip()), "")
    separator = "\t" if kind == "tsv" or "\t" in head else ";" if head.count(";") > head.count(",") else ","
    return [h.strip() for h in next(csv.reader([head], delimiter=separator), [])], separator


def _csv(path: Path_, names: list[str], separator: str, skip: int) -> tuple[pd.DataFrame, Lines]:
    frame = _csv_fast(path, names, separator, skip)
    if frame is not None:
        return frame, lambda row: _csv_slow(path, names, separator, skip)[1][row]
    frame, lines = _csv_slow(path, names, separator, skip)
    return frame, lines.__getitem__


def _csv_fast(path: Path_, names: list[str], separator: str, skip: int) -> pd.DataFrame | None:
    """By Arrow's parser; None where it finds anything odd, for the slow way to say what and where."""
    data = read_bytes(path, "a table")
    if data.count(b'"') % 2:  # Arrow reads an unclosed quotation to the end of the file
        return None
    try:
        table = pc.read_csv(
            pa.BufferReader(data),
            read_options=pc.ReadOptions(column_names=names, skip_rows=skip),
            parse_options=pc.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=pc.ConvertOptions(column_types=dict.fromkeys(names, pa.large_string())),
        )
    except pa.ArrowInvalid:
        return None
    return pd.DataFrame({n: table[n].to_pandas() for n in names}, copy=False)


def _csv_slow(path: Path_, names: list[str], separator: str, skip: int) -> tuple[pd.DataFrame, list[int]]:
    rows: list[list[str]] = []
    lines: list[int] = []
    last = 0
    with reading(path, "a table") as file:
        reader = csv.reader(file, delimiter=separator, strict=True)
        try:
            for row in reader:
                if row and len(row) != len(names):
                    expected = f"{len(names)}, as in the header ({', '.join(names)})"
                    raise InputError(path, last + 1, f"{len(row)} cells", expected)
                if row:
                    rows.append(row)
                    lines.append(last + 1)
                last = reader.line_num
        except csv.Error as error:
            raise InputError(path, reader.line_num, f"a broken row ({error})", "quoted or plain cells") from None
    return pd.DataFrame(rows[skip:], columns=names, dtype="str"), lines[skip:]


def _parquet(path: Path_) -> pd.DataFrame:
    import pyarrow.parquet as pq  # six megabytes that few need

    try:
        return pq.read_table(path).to_pandas()
    except FileNotFoundError:
        raise InputError(path, None, "no such file", "a Parquet file") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(path, None, f"a broken Parquet file ({one_line(error, 80)})", "a Parquet file") from None
