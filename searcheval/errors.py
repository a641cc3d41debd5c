"""The errors that searcheval raises on purpose: bad input, a system that answered in part, a notebook that failed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path


class InputError(ValueError):
    """Bad input, said in one line: where it is, what was found there, what was expected.

    Parameters
    ----------
    file : path or str
        The file, or a short name for input that is not a file (``"--set"``, ``"DataFrame"``).
    line : int or None
        Line number in the file, from 1; None where a line makes no sense.
    found, expected : str
        What was there, and what should have been.

    Examples
    --------
    >>> print(InputError("qrels.csv", 7, "grade 7", "a whole number from 0 to 3"))
    qrels.csv:7: found grade 7; expected a whole number from 0 to 3
    """

    def __init__(self, file: str | os.PathLike[str], line: int | None, found: str, expected: str) -> None:
        self.file, self.line, self.found, self.expected = short_path(file), line, one_line(found), one_line(expected)
        where = self.file if line is None else f"{self.file}:{line}"
        super().__init__(f"{where}: found {self.found}; expected {self.expected}")

    def __reduce__(self) -> tuple[type[InputError], tuple[str, int | None, str, str]]:
        return type(self), (self.file, self.line, self.found, self.expected)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback."""
        return [f"InputError: {self}"]


class PartialResult(Exception):
    """Raised by a system's ``search`` that can answer only in part: the list is kept, the run is marked *partial*.

    Parameters
    ----------
    results : sequence of (doc_id, score)
        What the arms that did work returned, best first.
    reason : str
        What is missing, in a few words.
    """

    def __init__(self, results: Sequence[tuple[str, float]], reason: str) -> None:
        self.results, self.reason = list(results), one_line(reason)
        super().__init__(self.reason)


class NotebookError(RuntimeError):
    """A notebook's cell failed; the executed notebook is kept at ``path``."""

    def __init__(self, notebook: str, path: Path, message: str) -> None:
        self.notebook, self.path, self.message = notebook, path, message
        super().__init__(notebook, path, message)

    def __str__(self) -> str:
        return f"{self.notebook} failed: {self.message}\nThe executed notebook is kept in {short_path(self.path)}"


def nearest(name: str, known: Iterable[str]) -> str:
    """The words that follow an unknown name: the closest known one if any is close, then all of them.

    >>> nearest("depht", ["depth", "k"])
    "one of depth, k (did you mean 'depth'?)"
    """
    names = [str(n) for n in known]
    close = get_close_matches(str(name), names, n=1, cutoff=0.6)
    return f"one of {', '.join(names)}" + (f" (did you mean '{close[0]}'?)" if close else "")


def one_line(text: object, limit: int = 300) -> str:
    """``text`` without line breaks, cut at ``limit`` characters.

    >>> one_line("a\\n  b")
    'a b'
    """
    words = " ".join(str(text).split())
    return words if len(words) <= limit else words[: limit - 1] + "…"


def short_path(file: str | os.PathLike[str]) -> str:
    """A path as a person would write it: relative to the working directory where that is shorter."""
    text = os.path.normpath(os.fspath(file))
    relative = os.path.relpath(text, Path.cwd()) if os.path.isabs(text) else text
    return relative if len(relative) < len(text) else text
