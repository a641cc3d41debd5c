"""Running a suite's notebooks headlessly, and the index page over all suites."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from searcheval import io
from searcheval.dataset import Dataset, check_files, load_dataset
from searcheval.errors import InputError, NotebookError
from searcheval.io import Path_
from searcheval.publish import PAGES, render
from searcheval.report import write_report


@dataclass(frozen=True)
class Page:
    """A notebook to execute and where its page goes."""

    notebook: str
    html: str
    title: str
    parameters: Mapping[str, str]


def notebooks_folder() -> Path:
    """The folder of the notebooks: inside an installed wheel, or beside the package in a checkout."""
    package = Path(__file__).parent
    return next(p for p in (package / "notebooks", package.parent / "notebooks") if p.is_dir())


def run_suite(ds: Dataset, out: Path_) -> dict[str, Any]:
    """Run a suite's notebooks and publish their pages and the report into ``out``.

    Everything is made in a folder beside ``out`` and moved at the end: only the files that a run writes are replaced,
    others stay, and a failure leaves the published pages as they were.

    Parameters
    ----------
    ds : Dataset
        From :func:`searcheval.load_dataset`.
    out : path

    Returns
    -------
    dict
        What ``report.json`` holds.

    Raises
    ------
    NotebookError
        If a notebook fails; it is kept, executed, in ``<out>/failed``.
    InputError
        If it failed for bad input.
    """
    out = Path(out).resolve()
    if out == ds.folder.resolve():
        raise InputError(
            out, None, "the suite's own folder as output", "another folder: its suite.yaml would be replaced"
        )
    check_output(out)
    check_files(ds)  # before the first kernel starts: a broken run file is a line, not a notebook
    names = [*(["01_seed"] if ds.code_systems else []), "03_score"]
    with staging(out) as stage:
        settings = ds.settings.moved(ds.folder.resolve(), stage)
        header = "# The resolved settings of this run, written by `searcheval run`.\n"
        io.write_text(
            stage / "suite.yaml",
            header + yaml.safe_dump(_written(settings.model_dump()), sort_keys=False, allow_unicode=True),
        )
        pages = [
            Page(n, f"{n}.html", f"{ds.name}: {PAGES[n].lower()}", {"suite": "suite.yaml", "out": "."}) for n in names
        ]
        links = [
            ("All suites", "../index.html"),
            *((PAGES[n], f"{n}.html") for n in names),
            ("How it is counted", "../methodology.html"),
        ]
        published = {"00_methodology.ipynb": "../methodology.html", **{f"{n}.ipynb": f"{n}.html" for n in names}}
        seconds = _execute(pages, stage, out, links, published)
        report = write_report(load_dataset(stage / "suite.yaml"), stage)
        run = {"seconds": seconds, "overridden": {k: str(v) for k, v in ds.overridden.items()}}
        io.write_text(stage / "run.json", json.dumps(run, indent=1) + "\n")
        for old in [*out.glob("0*.html"), *out.glob("notebooks/*.ipynb"), *out.glob("runs/*.jsonl")]:
            if not (stage / old.relative_to(out)).exists():
                old.unlink()
    shutil.rmtree(out / "failed", ignore_errors=True)
    return report


def run_index(reports: Path_, *, data: Path_ | None = None) -> None:
    """Write ``index.html`` over the suites in folders of ``reports``, ``methodology.html`` and ``performance.html``.

    Parameters
    ----------
    reports : path
    data : path, optional
        Runs and qrels to measure speed on; by default the notebook makes its own.

    Raises
    ------
    NotebookError, InputError
        As for :func:`run_suite`.
    """
    reports = Path(reports).resolve()
    if not any(reports.glob("*/report.json")):
        raise InputError(reports, None, "no suite's report.json", "the folder that `searcheval run` wrote suites into")
    timed = {} if data is None else {"data": str(Path(data).resolve())}
    pages = [
        Page("benchmarks", "index.html", "Benchmarks", {"reports": "."}),
        Page("00_methodology", "methodology.html", "How it is counted", {}),
        Page("performance", "performance.html", "Speed and memory", timed),
    ]
    links = [(page.title if page.notebook != "benchmarks" else "All suites", page.html) for page in pages]
    with staging(reports) as stage:
        # The index reads finished reports, so its notebook looks at the real folder.
        _execute(pages, stage, reports, links, {f"{page.notebook}.ipynb": page.html for page in pages}, reads=reports)


@contextmanager
def staging(out: Path) -> Iterator[Path]:
    """A folder beside ``out`` whose files are moved into it, one by one and whole, when the block ends well."""
    out.parent.mkdir(parents=True, exist_ok=True)
    for left in out.parent.glob(f".{out.name}.*.part"):
        pid = left.name.rsplit(".", 2)[1]
        if pid.isdecimal() and not _alive(int(pid)):  # of a run that was killed
            shutil.rmtree(left, ignore_errors=True)
    stage = out.parent / f".{out.name}.{os.getpid()}.part"
    stage.mkdir()
    try:
        yield stage
        for path in sorted(p for p in stage.rglob("*") if p.is_file()):
            target = out / path.relative_to(stage)
            target.parent.mkdir(parents=True, exist_ok=True)
            _replace(path, target)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def check_output(out: Path) -> None:
    """Raise InputError where no run could write: said before the work and not after it."""
    if out.exists() and not out.is_dir():
        raise InputError(out, None, "a file", "a folder to write pages into")
    nearest = next(p for p in (out, *out.parents) if p.exists())
    for place in {nearest, out.parent if out.parent.exists() else nearest}:
        if not os.access(place, os.W_OK | os.X_OK):
            raise InputError(place, None, "a folder that may not be written", "a writable folder (-o)")


def _replace(path: Path, target: Path) -> None:
    try:
        os.replace(path, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # The output folder is a file system of its own: copy beside the target, then rename there.
        beside = target.with_name(f".{target.name}.part")
        shutil.copyfile(path, beside)
        os.replace(beside, target)


def _execute(
    pages: Sequence[Page],
    stage: Path,
    out: Path,
    links: Sequence[tuple[str, str]],
    published: Mapping[str, str],
    reads: Path | None = None,
) -> dict[str, float]:
    """Execute and render each page's notebook into ``stage``; seconds by notebook."""
    folder = notebooks_folder().resolve()
    base = reads or stage
    seconds: dict[str, float] = {}
    for number, page in enumerate(pages, 1):
        print(f"[{number}/{len(pages)}] {page.notebook} ...", end="", file=sys.stderr, flush=True)
        start = time.perf_counter()
        parameters = {k: Path(os.path.relpath(base / v, folder)).as_posix() for k, v in page.parameters.items()}
        executed = stage / "notebooks" / f"{page.notebook}.ipynb"
        executed.parent.mkdir(exist_ok=True)
        try:
            _papermill(folder / f"{page.notebook}.ipynb", executed, parameters, folder)
        except Exception as error:
            print(" failed", file=sys.stderr, flush=True)
            kept = out / "failed" / executed.name
            if executed.exists():
                _relocated(executed, base, folder, stage, out)
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(executed, kept)
                if isinstance(error, NotebookError):
                    error.path = kept
            raise
        _relocated(executed, base, folder, stage, out)
        render(executed, stage / page.html, title=page.title, links=links, pages=published)
        seconds[page.notebook] = round(time.perf_counter() - start, 2)
        print(f" {seconds[page.notebook]:.1f} s", file=sys.stderr, flush=True)
    return seconds


def _papermill(notebook: Path, executed: Path, parameters: Mapping[str, str], folder: Path) -> None:
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    before = os.environ.get("SEARCHEVAL_BATCH")
    os.environ["SEARCHEVAL_BATCH"] = "1"
    try:
        papermill.execute_notebook(
            str(notebook),
            str(executed),
            parameters=dict(parameters) or None,
            cwd=str(folder),
            kernel_name="python3",
            progress_bar=False,
            extra_arguments=["--log-level=CRITICAL"],  # its notes on sockets and interrupts would land in every log
        )
    except PapermillExecutionError as error:
        if error.ename == "InputError":
            raise _input_error(str(error.evalue), folder) from None
        message = f"{error.ename}: {error.evalue}, in cell {error.exec_count}:\n{error.source}"
        raise NotebookError(notebook.stem, executed, message) from None
    except DeadKernelError:
        raise NotebookError(
            notebook.stem, executed, "its kernel died (out of memory, or a crash below Python)"
        ) from None
    finally:
        if before is None:
            del os.environ["SEARCHEVAL_BATCH"]
        else:
            os.environ["SEARCHEVAL_BATCH"] = before


def _input_error(said: str, folder: Path) -> InputError:
    """The InputError that a notebook's kernel printed in ``folder``, put together again from its one line."""
    where, _, rest = said.partition(": found ")
    found, _, expected = rest.partition("; expected ")
    match = re.fullmatch(r"(.+?)(?::(\d+))?", where)
    if match is None or not (folder / match[1]).exists():
        return InputError(where, None, found, expected)
    return InputError((folder / match[1]).resolve(), int(match[2]) if match[2] else None, found, expected)


def _relocated(executed: Path, base: Path, folder: Path, stage: Path, out: Path) -> None:
    """Paths as seen from where the executed notebook ends up, ``<out>/notebooks``: it can be run again from there.

    The staging folder, and the way from the notebooks' folder to it, are nobody's business.
    """
    text = executed.read_text(encoding="utf-8")
    text = text.replace(Path(os.path.relpath(base, folder)).as_posix(), "..")
    io.write_text(executed, text.replace(stage.name, out.name))


def _written(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as a person would write them: without those that are unset."""
    return {k: v for k, v in settings.items() if v not in (None, {}, [])}


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
