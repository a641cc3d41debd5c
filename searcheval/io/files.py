"""Files: opened with errors that name them, written whole or not at all, and told apart by ending and content."""

from __future__ import annotations

import gzip
import io
import json
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, TextIO, TypeAlias

from searcheval import schema
from searcheval.errors import InputError, nearest

Path_: TypeAlias = str | os.PathLike[str]
Format: TypeAlias = Literal["trec", "jsonl", "json", "csv", "tsv", "parquet"]

_HEADER = {name for names in schema.SYNONYMS.values() for name in names}


@contextmanager
def atomic(path: Path_, mode: Literal["text", "binary"] = "text") -> Iterator[Any]:
    """A file that takes its place at ``path`` only when it is whole; an error or a full disk leaves the old one.

    Text is UTF-8; a path that ends in ``.gz`` is packed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as raw:
            if mode == "binary":
                yield raw
            elif path.suffix == ".gz":
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
    with reading(path, expected) as file:
        text = file.read()
    try:
        data = json.loads(text, object_pairs_hook=unique_keys)
    except json.JSONDecodeError as error:
        raise InputError(path, error.lineno, f"broken JSON ({error.msg})", expected) from None
    except (TwiceError, RecursionError) as error:
        raise InputError(path, None, str(error), "each key once") from None
    if not isinstance(data, dict):
        raise InputError(path, 1, f"a JSON {type(data).__name__}", expected)
    return data


@contextmanager
def reading(path: Path_, expected: str) -> Iterator[IO[str]]:
    """An open text file whose decoding and unpacking errors become InputErrors."""
    with _opened(path, "rt", encoding="utf-8-sig") as file:
        try:
            yield file
        except UnicodeDecodeError:
            raise InputError(path, _bad_line(path), "bytes that are not UTF-8", f"{expected}, as UTF-8 text") from None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(path, None, f"a broken gzip file ({error})", expected) from None


def read_bytes(path: Path_, expected: str) -> bytes:
    """All of a file, unpacked, without a byte-order mark."""
    with _opened(path, "rb") as file:
        try:
            return bytes(file.read()).removeprefix(b"\xef\xbb\xbf")
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(path, None, f"a broken gzip file ({error})", expected) from None


def blocks(path: Path_, expected: str, size: int = 1 << 20) -> Iterator[bytes]:
    """A file, unpacked, in blocks of whole lines of about ``size`` bytes, without a byte-order mark."""
    with _opened(path, "rb") as file:
        rest, first = b"", True
        try:
            while chunk := file.read(size):
                if first:
                    chunk, first = chunk.removeprefix(b"\xef\xbb\xbf"), False
                cut = chunk.rfind(b"\n") + 1
                if cut:
                    yield rest + chunk[:cut]
                    rest = chunk[cut:]
                else:
                    rest += chunk
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(path, None, f"a broken gzip file ({error})", expected) from None
        if rest:
            yield rest


def ending(path: Path_) -> str:
    """What the file's name ends in, lower case, without ``.gz``; ``""`` for none."""
    name = os.path.basename(os.fspath(path)).lower().removesuffix(".gz")
    last = name.rsplit(".", 1)[-1] if "." in name else ""
    return {"ndjson": "jsonl", "pq": "parquet"}.get(last, last)


def sniff(path: Path_) -> Format:
    """By content, with the ending as a hint: a headerless ``.tsv`` of four columns is TREC qrels."""
    named = ending(path)
    if named == "parquet":
        return "parquet"
    with reading(path, "a text file") as file:
        first = next((line for line in file if line.strip() and not line.startswith("#")), "")
    if named == "json" or (first.lstrip().startswith("{") and named != "jsonl" and not _whole(first)):
        return "json"
    if named == "jsonl" or first.lstrip().startswith("{"):
        return "jsonl"
    names = {n.strip().strip('"').lower() for n in first.replace("\t", ",").replace(";", ",").split(",")}
    if named in ("csv", "tsv"):
        headerless = len(first.split()) in (4, 6) and "," not in first and not names & _HEADER
        return "trec" if headerless else named  # type: ignore[return-value]
    if len(names & _HEADER) >= 2:
        return "tsv" if "\t" in first else "csv"
    return "trec"


class TwiceError(Exception):
    """A key that stands twice in one JSON object."""


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For ``json.loads``, which would silently keep the last of two equal keys."""
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [k for k, _ in pairs]
        raise TwiceError(f"key {next(k for k in keys if keys.count(k) > 1)!r} twice")
    return record


def _whole(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _text(raw: Any) -> TextIO:
    return io.TextIOWrapper(raw, encoding="utf-8", newline="")


def _opened(path: Path_, mode: str, **how: Any) -> Any:
    opener: Callable[..., Any] = gzip.open if os.fspath(path).endswith(".gz") else open
    try:
        return opener(path, mode, **how)
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


def _bad_line(path: Path_) -> int | None:
    """The first line that is not UTF-8."""
    with _opened(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return None
