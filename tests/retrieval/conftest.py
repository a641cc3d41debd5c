"""A cache folder, and so an embedded PostgreSQL, of the tests' own; Python programs that use one from outside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest


@contextmanager
def temporary_folder() -> Iterator[Path]:
    # Not pytest's: as root the server runs as another user, and pytest's folders are closed to it.
    folder = Path(tempfile.mkdtemp(prefix="searcheval-test-")).resolve()
    try:
        yield folder
    finally:
        for process in servers(folder):  # only if a test failed
            process.kill()
        shutil.rmtree(folder)


@pytest.fixture(scope="package")
def shared_cache():
    from searcheval.retrieval import disconnect

    with temporary_folder() as folder:
        yield folder
        disconnect()
        assert servers(folder) == []


@pytest.fixture
def database(shared_cache, monkeypatch):
    """The embedded PostgreSQL, the same one for all tests of this process."""
    monkeypatch.setenv("SEARCHEVAL_CACHE", str(shared_cache))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    return shared_cache


@pytest.fixture
def empty_cache(monkeypatch):
    """A cache folder with nothing in it, for programs started by `start`."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    with temporary_folder() as folder:
        monkeypatch.setenv("SEARCHEVAL_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def kept_cache():
    with temporary_folder() as folder:
        yield folder


@pytest.fixture
def cache(kept_cache, monkeypatch):
    """A cache folder with what earlier tests of the module left in it, for programs started by `start`."""
    monkeypatch.setenv("SEARCHEVAL_CACHE", str(kept_cache))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    return kept_cache


def servers(folder: Path) -> list[psutil.Process]:
    """Live PostgreSQL servers with their data below ``folder``."""
    return [
        p
        for p in psutil.process_iter(["name", "cmdline"])
        if p.info["name"] == "postgres" and any(a.startswith(f"{folder}/") for a in p.info["cmdline"] or ())
    ]


@pytest.fixture
def server_pids():
    return lambda folder: [p.pid for p in servers(folder)]


@pytest.fixture
def start():
    """Start Python code in a process of its own; what still runs at the end of the test is killed."""
    started = []

    def run(code: str, **env: str) -> subprocess.Popen[str]:
        program = subprocess.Popen(
            [sys.executable, "-c", PREAMBLE + code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | env,
        )
        started.append(program)
        return program

    yield run
    for program in started:
        if program.poll() is None:
            program.kill()
        program.communicate()


@pytest.fixture
def finish():
    """Wait for a program to end well, and return what it printed."""

    def wait(program: subprocess.Popen[str]) -> str:
        out, err = program.communicate("\n", timeout=60)
        assert program.returncode == 0, err
        return out.strip()

    return wait


PREAMBLE = """
from searcheval.retrieval import connect, disconnect
def seed(*args):  # imported late: half of these programs only connect
    from searcheval.retrieval import seed
    return seed(*args)
def frame(n, word="wheel"):
    import pandas as pd
    return pd.DataFrame({"doc_id": [f"d{i}" for i in range(n)], "text": [f"{word} number {i}" for i in range(n)]})
"""
