"""Time and memory of calls beside each other: what the `performance` notebook is made of."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from searcheval.errors import one_line

# On Linux ru_maxrss starts at what the parent held when it forked; VmHWM is the process's own. macOS counts bytes.
_PEAK = """
import os, resource
if os.path.exists("/proc/self/status"):
    print(next(int(line.split()[1]) / 1000 for line in open("/proc/self/status") if line.startswith("VmHWM")))
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def interleaved(calls: Mapping[str, Callable[[], Any]], *, repeats: int = 5) -> pd.DataFrame:
    """Seconds of each call, taken in turns, so that a slow moment of the machine meets all of them.

    Parameters
    ----------
    calls : dict of functions without arguments
    repeats : int
        Turns after the first, which is reported apart.

    Returns
    -------
    DataFrame
        By name: ``cold`` (the first turn, with whatever it imports or compiles) and ``warm`` (median of the others).

    Examples
    --------
    >>> interleaved({"nothing": lambda: None}, repeats=2).columns.tolist()
    ['cold', 'warm']
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    rows = {name: {"cold": taken[0], "warm": statistics.median(taken[1:])} for name, taken in seconds.items()}
    return pd.DataFrame(rows).T


def peak_memory(code: str, *arguments: str) -> float:
    """Peak resident memory, in MB, of a new Python process that runs ``code`` with ``arguments`` in ``sys.argv[1:]``.

    Raises
    ------
    RuntimeError
        If the code fails; the end of what it said is in the message.

    Examples
    --------
    >>> peak_memory("pass") > 1
    True
    """
    command = [sys.executable, "-c", f"{code}\n{_PEAK}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(one_line(done.stderr[-300:]))
    return float(done.stdout.splitlines()[-1])


def seconds_of_import(module: str, *, repeats: int = 5) -> float:
    """Median seconds that a fresh Python takes to import a module, beyond what it takes to start."""

    def once(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    pairs = [(once(f"import {module}"), once("pass")) for _ in range(repeats)]
    return max(statistics.median(a for a, _ in pairs) - statistics.median(b for _, b in pairs), 0.0)
