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

Queries = Annotated[Optional[Path], typer.Option("-q", "--queries", help="Queries: JSONL, CSV, TSV or Parquet.")]
Documents = Annotated[
    Optional[Path],
    typer.Option("-d", "--documents", "-p", "--products", help="Documents: JSONL, CSV, TSV or Parquet."),
]
Qrels = Annotated[Optional[Path], typer.Option("--qrels", help="Judgments: TREC, CSV, TSV, JSONL, JSON or Parquet.")]
System = Annotated[
    Optional[list[str]], typer.Option("-s", "--system", help="NAME=FILE (a run) or NAME=FILE.py:FACTORY; repeat it.")
]
MeasureName = Annotated[Optional[list[str]], typer.Option("-m", "--measure", help="Such as nDCG@10; repeat it.")]
Setting = Annotated[Optional[list[str]], typer.Option("--set", help="Any setting: KEY=VALUE, dots reach inside.")]
Suite = Annotated[
    Optional[Path],
    typer.Argument(help="A suite folder, a suite.yaml, or a folder of qrels and runs.", show_default=False),
]
Reports = Annotated[Path, typer.Argument(help="The folder that `searcheval run` wrote suites into.")]
Report = Annotated[Path, typer.Argument(help="A report.json, or the folder that holds one.", show_default=False)]


@app.command()
def run(
    suite: Suite = None,
    queries: Queries = None,
    documents: Documents = None,
    qrels: Qrels = None,
    system: System = None,
    measure: MeasureName = None,
    baseline: Annotated[Optional[str], typer.Option(help="The system that others are compared with.")] = None,
    depth: Annotated[Optional[int], typer.Option(help="How far down each list coverage looks.")] = None,
    settings: Setting = None,
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
    counts = f"{len(ds.queries)} queries, {len(ds.qrels)} judgments, {len(ds.settings.systems)} systems"
    print(f"{ds.name}: {counts}", file=sys.stderr)
    from searcheval.runner import run_suite  # notebooks and drawings: only once the input is known to be good

    report = run_suite(ds, target)
    print(result_table(report))
    print(f"pages and report in {target}", file=sys.stderr)


@app.command()
def score(
    suite: Suite = None,
    queries: Queries = None,
    documents: Documents = None,
    qrels: Qrels = None,
    system: System = None,
    measure: MeasureName = None,
    settings: Setting = None,
    out: Annotated[
        Optional[Path], typer.Option("-o", "--out", help="Write scores by query: FILE.csv, .tsv, .json or .jsonl.")
    ] = None,
) -> None:
    """Score runs without notebooks: means on the terminal, scores by query into a file on request.

    Examples:

        searcheval score --qrels qrels.txt -s old=old.run -s new=new.run.gz -m nDCG@10 -m AP

        searcheval score my/folder -o scores.csv
    """
    from searcheval.report import aligned_table, score_files, write_scores

    ds = _dataset(suite, queries, documents, qrels, system, measure, {}, settings)
    scores, table = score_files(ds, Path("reports") / ds.name)
    if out is not None:
        write_scores(scores, out)
    print(aligned_table(table))


@app.command()
def index(
    reports: Reports = Path("reports"),
    data: Annotated[
        Optional[Path], typer.Option(help="Runs and qrels to measure speed on. Default: generated.", show_default=False)
    ] = None,
) -> None:
    """Write index.html, methodology.html and performance.html over all suites; print every suite's result table.

    Examples:

        searcheval index reports

        searcheval index reports --data folder/of/runs/and/qrels
    """
    from searcheval.runner import run_index

    run_index(reports, data=data)
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
        Optional[float], typer.Option(help="The largest absolute drop that passes. Default: gate.max_drop.")
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
    from searcheval.report import Suite, aligned_table

    return aligned_table(Suite("", report, []).table().drop(columns="labelled"))


def main() -> None:
    """The entry point: bad input is one line on standard error and exit code 2, never a traceback."""
    try:
        app()
    except InputError as error:
        _stop(str(error), 2)
    except NotebookError as error:
        _stop(str(error), 1)
    except ModuleNotFoundError as error:
        _stop(f"no package {error.name!r}; notebooks, pages and the database need `pip install 'searcheval[all]'`", 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _stop(f"{error.filename or 'searcheval'}: {error.strerror or error}", 2)
    except KeyboardInterrupt:
        print("searcheval: interrupted; earlier results are as they were", file=sys.stderr, flush=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # what the notebook client still has to say
        sys.exit(130)


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
    from searcheval.dataset import load_dataset, make_dataset, suite_name
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
        return Path(os.path.relpath(Path(path).resolve(), base.resolve())).as_posix()

    flags |= {k: moved(v) for k, v in files.items() if v is not None}
    if systems:
        flags["systems"] = {n: moved(f) for n, f in systems.items()}
    flags = _merged(flags, parse_set(settings or []))
    if suite is not None:
        return load_dataset(suite, **flags)
    flags.setdefault("name", suite_name(base))
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
