"""TREC's blank-separated columns: Arrow's parser where the file is regular, line by line where it is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.csv as pc

from searcheval.errors import InputError, one_line
from searcheval.io.files import Path_, blocks, reading

# From the position of a row to its line in the file.
Lines: TypeAlias = Callable[[int], int]

_NUMBERS = ("rank", "score", "relevance")
_BLANKS = re.compile(r"[ \t\f\v]+")
_TO_SPACE = bytes.maketrans(b"\t\f\v", b"   ")


def read_trec(
    path: Path_, columns: dict[str, int], least: int, expected: str, *, drop: str | None = None
) -> tuple[pd.DataFrame, Lines]:
    """The named columns of a file whose columns stand between blanks or tabs.

    Parameters
    ----------
    path : path
    columns : dict
        Where each wanted column stands, from 0. ``rank``, ``score`` and ``relevance`` are read as numbers.
    least : int
        How many columns a line must have; what follows them is passed over.
    expected : str
        What they are, for errors.
    drop : str, optional
        A column to check but not to keep.

    Returns
    -------
    DataFrame, function
        The rows in the order of the file; the line of each.

    Raises
    ------
    InputError
        For a line with too few columns or with something else where a number should be.
    """
    parts: list[pa.Table] = []
    frame = None
    for block in blocks(path, expected):
        part = _fast(block, columns, least)
        if part is None:
            parts.clear()
            frame = _slow(path, columns, least, expected)
            break
        parts.append(part if drop is None else part.drop_columns(drop))
    if frame is None:
        frame = _joined(parts, [c for c in columns if c != drop])
    return frame, lambda row: _line_of(path, row, columns, least)


def first_cells(path: Path_) -> list[str]:
    """The columns of the first line that is neither empty nor a comment."""
    with reading(path, "text") as file:
        return next((cells for _, cells in _rows(file, 0) if not cells[0].startswith("#")), [])


def _fast(data: bytes, columns: dict[str, int], least: int) -> pa.Table | None:
    """Some whole lines by Arrow's parser; None where it refuses anything, for the slow way to say what and where."""
    table = _parsed(data, columns, least)
    if table is None:
        # Free text after the last column differs in length from line to line: cut it off and try again.
        blank, word = rb"[ \t\f\v]+", rb"[^ \t\f\v\r\n]+"
        wanted = rb"((?:" + word + blank + rb"){%d}" % (least - 1) + word + rb")"
        table = _parsed(re.sub(rb"(?m)^" + wanted + blank + rb"[^\r\n]*", rb"\1", data), columns, least)
    return table


def _parsed(data: bytes, columns: dict[str, int], least: int) -> pa.Table | None:
    data = data.translate(_TO_SPACE)
    # Other irregular lines have another number of columns, and Arrow refuses the block.
    if data.startswith((b" ", b"#")) or b"  " in data or b"\n#" in data:
        data = re.sub(rb"(?m)^ *#(?=[ #\r\n]|$).*$", b"", data)
        data = re.sub(rb" +", b" ", data)
        data = re.sub(rb"(?m)^ | (?=\r?$)", b"", data)
    start = len(data) - len(data.lstrip(b"\r\n"))
    end = data.find(b"\n", start)
    first = data[start : end if end >= 0 else len(data)].strip()
    if not first:
        return pa.table({c: pa.array([], type=_type(c)) for c in columns})
    count = first.count(b" ") + 1
    if count < least:
        return None
    names = [f"c{i}" for i in range(count)]
    types = {names[i]: _type(c) for c, i in columns.items()}
    try:
        table = pc.read_csv(
            pa.BufferReader(data),
            read_options=pc.ReadOptions(column_names=names, use_threads=False),
            parse_options=pc.ParseOptions(delimiter=" ", quote_char=False, escape_char=False),
            convert_options=pc.ConvertOptions(include_columns=list(types), column_types=types, null_values=[]),
        ).rename_columns(list(columns))
    except pa.ArrowInvalid:
        return None
    numbers = [c for c in columns if c in _NUMBERS]
    return None if any(compute.any(compute.is_nan(table[c])).as_py() for c in numbers) else table


def _joined(parts: list[pa.Table], columns: list[str]) -> pd.DataFrame:
    """One frame of many tables, a column at a time, so that never more than one column is held twice."""
    data = {}
    for column in columns:
        chunks = [chunk for part in parts for chunk in part[column].chunks]
        whole = pa.concat_arrays(chunks) if chunks else pa.array([], type=_type(column))
        parts[:] = [part.drop_columns(column) for part in parts]
        del chunks
        data[column] = whole.to_pandas()
    return pd.DataFrame(data, copy=False)


def _type(column: str) -> pa.DataType:
    return pa.float64() if column in _NUMBERS else pa.large_string()


def _slow(path: Path_, columns: dict[str, int], least: int, expected: str) -> pd.DataFrame:
    found: dict[str, list[str | float]] = {c: [] for c in columns}
    with reading(path, expected) as file:
        for number, cells in _rows(file, least):
            if _is_comment(cells, columns, least):
                continue
            if len(cells) < least:
                what = f"{len(cells)} columns ({one_line(' '.join(cells), 60)})"
                raise InputError(path, number, what, f"{least} columns: {expected}")
            for column, place in columns.items():
                found[column].append(
                    _number(path, number, column, cells[place]) if column in _NUMBERS else cells[place]
                )
    data = {c: pd.Series(v, dtype="float64" if c in _NUMBERS else "str") for c, v in found.items()}
    return pd.DataFrame(data)


def _rows(lines: Iterator[str], most: int) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines, 1):
        text = line.strip(" \t\f\v\r\n")
        if text:
            yield number, _BLANKS.split(text, maxsplit=max(most, 0))


def _is_comment(cells: list[str], columns: dict[str, int], least: int) -> bool:
    """A line that starts with # is a comment, unless it is a whole row: ``#7`` may be somebody's query id."""
    if not cells[0].startswith("#"):
        return False
    numbers = [cells[place] for column, place in columns.items() if column in _NUMBERS and place < len(cells)]
    whole = len(cells) >= least and all(_as_number(n) == _as_number(n) for n in numbers)
    return not whole or cells[0].strip("#") == ""


def _number(path: Path_, line: int, column: str, text: str) -> float:
    number = _as_number(text)
    if number != number:
        what = "a whole number" if column == "relevance" else "a finite number"
        raise InputError(path, line, f"{column} {text!r}", f"{what} as {column}")
    return number


def _as_number(text: str) -> float:
    try:
        return float(text) if "_" not in text else np.nan
    except ValueError:
        return np.nan


def _line_of(path: Path_, row: int, columns: dict[str, int], least: int) -> int:
    with reading(path, "text") as file:
        rows = (number for number, cells in _rows(file, least) if not _is_comment(cells, columns, least))
        return next(islice(rows, row, None))
