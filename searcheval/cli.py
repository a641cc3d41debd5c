"""The command line. It alone decides exit codes: 0 good, 1 a gate or a notebook failed, 2 bad input or missing
evidence."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from searcheval import __version__
from searcheval.errors import InputError, NotebookError

app = typer.Typer(
    help="Is the new search system better, and how sure are we? Offline evaluation of search, in notebooks and in CI.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

Suite = Annotated[
    Optional[Path],
    typer.Argument(help="A suite folder, a suite.yaml, or a folder of qrels and runs.", show_default=False),
]
Report = Annotated[Path, typer.Argument(help="A report.json, or the folder that holds one.", show_default=False)]


@app.command()
def run(
    suite: Suite = None,
    queries: Annotated[Optional[Path], typer.Option("-q", "--queries", help="Queries: JSONL, CSV or TSV.")] = None,
    documents: Annotated[
        Optional[Path], typer.Option("-d", "--documents", "-p", "--products", help="Documents: JSONL, CSV or TSV.")
    ] = None,
    qrels: Annotated[Optional[Path], typer.Option("--qrels", help="Judgments: TREC, CSV, TSV or JSONL.")] = None,
    system: Annotated[
        Optional[list[str]],
        typer.Option("-s", "--system", help="NAME=FILE (a run) or NAME=FILE.py:FACTORY; repeat it."),
    ] = None,
    measure: Annotated[Optional[list[str]], typer.Option("-m", "--measure", help="Such as nDCG@10; repeat it.")] = None,
    baseline: Annotated[Optional[str], typer.Option(help="The system that others are compared with.")] = None,
    depth: Annotated[Optional[int], typer.Option(help="How far down each list coverage looks.")] = None,
    settings: Annotated[
        Optional[list[str]], typer.Option("--set", help="Any setting: KEY=VALUE, dots reach inside.")
    ] = None,
    out: Annotated[Optional[Path], typer.Option("-o", "--out", help="Default: reports/SUITE.")] = None,
) -> None:
    """Run a suite's notebooks; write its pages, report.json and report.md.

    Examples:

        searcheval run data/services

        searcheval run my/folder --set depth=20 -o reports/mine

        searcheval run --qrels qrels.txt -s old=old.run -s new=new.run -m nDCG@10 -m AP
    """
    ds = _dataset(suite, queries, documents, qrels, system, measure, {"baseline": baseline, "depth": depth}, settings)
    target = out or Path("reports") / ds.name
    print(
        f"{ds.name}: {len(ds.queries)} queries, {len(ds.qrels)} judgments, {len(ds.settings.systems)} systems",
        file=sys.stderr,
    )
    from searcheval.runner import run_suite  # notebooks and drawings: only once the input is known to be good

    report = run_suite(ds, target)
    print(result_table(report))
    print(f"pages and report in {target}", file=sys.stderr)


@app.command()
def index(
    reports: Annotated[Path, typer.Argument(help="The folder that `searcheval run` wrote suites into.")] = Path(
        "reports"
    ),
) -> None:
    """Write index.html and methodology.html over all suites in a folder, and print every suite's result table.

    Example:

        searcheval index reports
    """
    from searcheval.runner import run_index

    run_index(reports)
    for path in sorted(reports.glob("*/report.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        print(f"\n{report['suite']}\n{result_table(report)}")
    print(f"\nopen {reports / 'index.html'}", file=sys.stderr)


@app.command()
def gate(
    report: Report,
    system: Annotated[
        Optional[str], typer.Option(help="The system that gates. Default: gate.system of the suite.")
    ] = None,
    max_drop: Annotated[
        Optional[float], typer.Option(min=0, help="The largest absolute drop that passes. Default: gate.max_drop.")
    ] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Make today's run the accepted one; then run again.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Compare the served system with its accepted run: exit 0 if every condition holds, 1 if one fails, 2 without
    evidence.

    Examples:

        searcheval gate reports/services

        searcheval gate reports/services --system fused --max-drop 0.01

        searcheval gate reports/services --accept
    """
    from searcheval.gate import accept as accepting
    from searcheval.gate import gate as gating

    if accept:
        print("\n".join(accepting(report, system=system)))
        return
    result = gating(report, system=system, max_drop=max_drop)
    if as_json:
        print(json.dumps({**asdict(result), "passed": result.passed}, indent=1))
    else:
        from searcheval.report import markdown_table

        print(markdown_table(result.table()))
        print(f"\n{result.suite}: {result.system} {'passes' if result.passed else 'FAILS'} the gate")
    if not result.passed:
        raise typer.Exit(1)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def result_table(report: dict[str, Any]) -> str:
    """A report's means as an aligned table: the first five measures of the suite."""
    from searcheval.report import Suite

    table = Suite("", report, []).table().drop(columns="labelled")
    rows = [["system", *table.columns]]
    rows += [
        [name, *("–" if v != v else f"{v:.3f}" for v in row)]
        for name, row in zip(table.index, table.values, strict=True)
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(" | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def main() -> None:
    """The entry point: bad input is one line on standard error and exit code 2, never a traceback."""
    try:
        app()
    except InputError as error:
        _stop(str(error), 2)
    except NotebookError as error:
        _stop(str(error), 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _stop(f"{error.filename or 'searcheval'}: {error.strerror or error}", 2)
    except KeyboardInterrupt:
        _stop("interrupted; earlier results are as they were", 130)


def _stop(message: str, code: int) -> None:
    print(f"searcheval: {message}", file=sys.stderr)
    sys.exit(code)


def _dataset(
    suite: Path | None,
    queries: Path | None,
    documents: Path | None,
    qrels: Path | None,
    system: list[str] | None,
    measure: list[str] | None,
    more: dict[str, Any],
    settings: list[str] | None,
) -> Any:
    """The dataset that a command's arguments describe: a suite with flags on top, or flags alone."""
    from searcheval.dataset import load_dataset, make_dataset
    from searcheval.settings import parse_set, resolve

    flags: dict[str, Any] = {k: v for k, v in more.items() if v is not None}
    flags |= {"measures": measure} if measure else {}
    systems = dict(_named(item) for item in system or [])
    files = {"queries": queries, "documents": documents, "qrels": qrels}
    base = suite if suite is None or suite.is_dir() else suite.parent
    if base is None:
        first = queries or qrels
        if first is None:
            raise InputError(
                "searcheval", None, "neither a suite nor --qrels", "a suite folder, or --qrels FILE -s NAME=FILE"
            )
        base = first.parent

    def moved(path: str | Path) -> str:
        # Flags name files as seen from here, settings as seen from the suite's folder.
        return Path(os.path.relpath(path, base)).as_posix()

    flags |= {k: moved(v) for k, v in files.items() if v is not None}
    if systems:
        flags["systems"] = {n: moved(f) for n, f in systems.items()}
    flags = _merged(flags, parse_set(settings or []))
    if suite is not None:
        return load_dataset(suite, **flags)
    flags.setdefault("name", base.resolve().name)
    if "qrels" not in flags:
        raise InputError("searcheval", None, "no --qrels", "--qrels FILE")
    return make_dataset(resolve({}, flags), base)


def _merged(flags: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    for key, value in more.items():
        both = isinstance(value, dict) and isinstance(flags.get(key), dict)
        flags[key] = {**flags[key], **value} if both else value
    return flags


def _named(item: str) -> tuple[str, str]:
    name, equals, file = item.partition("=")
    if not equals or not name or not file:
        raise InputError(f"-s {item}", None, "no NAME=FILE", "for example -s bm25=runs/bm25.trec")
    return name, file
