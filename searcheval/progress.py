"""One progress bar for everything that takes a while."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TypeVar

from tqdm.std import tqdm as text_bar

T = TypeVar("T")


def progress(items: Iterable[T], label: str, *, total: int | None = None, unit: str = "it") -> Iterable[T]:
    """Iterate over ``items`` under a progress bar named ``label``.

    In JupyterLab the bar is a widget and on a terminal a line that redraws itself. In a batch (``SEARCHEVAL_BATCH=1``,
    or standard error that is no terminal and no notebook) nothing is drawn but one line at the end: a widget in a
    published page would call out to the network, and a redrawn bar fills a log.

    >>> list(progress([1, 2], "counting"))
    [1, 2]
    """
    if batch():
        return _lines(items, label, unit)
    if not _in_notebook():
        return text_bar(items, desc=label, total=total, unit=unit, leave=False)
    from tqdm.notebook import tqdm as widget_bar  # only where somebody watches: the import alone wants ipywidgets

    bar: Iterable[T] = widget_bar(items, desc=label, total=total, unit=unit)
    return bar


def batch() -> bool:
    """True where nobody watches: under the runner, or with standard error going to a file."""
    return os.environ.get("SEARCHEVAL_BATCH") == "1" or not (_in_notebook() or sys.stderr.isatty())


def _in_notebook() -> bool:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel")


def _lines(items: Iterable[T], label: str, unit: str) -> Iterable[T]:
    count = 0
    for item in items:
        yield item
        count += 1
    print(f"{label}: {count} {unit}", file=sys.stderr)
