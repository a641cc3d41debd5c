"""May this change pass? Conditions on a report, each with its limit, what was found, and the answer."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from searcheval import io
from searcheval.compare import EQUAL, means
from searcheval.dataset import Dataset, load_dataset, load_runs, read_baseline, sha256_of
from searcheval.errors import InputError, nearest, short_path
from searcheval.io import Path_
from searcheval.metrics import evaluate, parse_measure
from searcheval.settings import ACCEPTED

_REPORT = "a report.json that `searcheval run` wrote"


@dataclass(frozen=True)
class Condition:
    """One row of the gate's table."""

    condition: str
    limit: str
    found: str
    passed: bool


@dataclass(frozen=True)
class GateResult:
    """All conditions of one gate; it passes only if each of them does."""

    suite: str
    system: str
    conditions: list[Condition]

    @property
    def passed(self) -> bool:
        return bool(self.conditions) and all(c.passed for c in self.conditions)

    def table(self) -> pd.DataFrame:
        """``condition, limit, found, pass``, one row a condition."""
        rows = [(c.condition, c.limit, c.found, "yes" if c.passed else "NO") for c in self.conditions]
        return pd.DataFrame(rows, columns=["condition", "limit", "found", "pass"]).set_index("condition")


def gate(report: Path_, *, system: str | None = None, max_drop: float | None = None) -> GateResult:
    """Check a report against its suite's ``gate`` settings.

    The system's scores are compared with those of its accepted run, scored under the same labels in the same report, so
    that a change of labels never looks like a change of ranking.

    Parameters
    ----------
    report : path
        A ``report.json``, or the folder that holds one.
    system, max_drop
        Override ``gate.system`` and ``gate.max_drop`` (absolute; a drop of exactly that much passes).

    Returns
    -------
    GateResult

    Raises
    ------
    InputError
        For missing evidence: no accepted run, a measure or system that the report does not hold, a system not run or
        partial. Missing evidence is never a pass.
    """
    path, data = _read(report)
    try:
        return _checked(path, data, system, max_drop)
    except InputError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(path, None, f"a damaged report ({type(error).__name__}: {error})", _REPORT) from None


def _checked(path: Path, data: Mapping[str, Any], system: str | None, max_drop: float | None) -> GateResult:
    settings = data["settings"]["gate"]
    system = _system(path, data, system)
    limit = settings["max_drop"] if max_drop is None else max_drop
    accepted = system + ACCEPTED
    metrics = data["metrics"]
    if accepted not in metrics:
        what = f"no accepted run of {system}"
        raise InputError(
            path, None, what, "one, to measure a drop from: `searcheval gate --accept` writes it, then run again"
        )
    for name in (system, accepted):
        status = data["systems"][name]
        if status["status"] != "ok":
            raise InputError(path, None, f"{name} {status['status']} ({status['reason']})", "a system that ran whole")
    names = settings["measures"] or [data["settings"]["primary"] or data["settings"]["measures"][0]]
    if not 0 <= limit < math.inf:
        raise InputError(path, None, f"max_drop {limit}", "a finite number from 0")
    conditions = []
    for text in names:
        measure = str(parse_measure(text, max_grade=data["settings"]["max_grade"]))
        now, before = _paired(data["per_query"], system, accepted, measure)
        if not len(now):
            raise InputError(
                path, None, f"no {measure} of {system} and {accepted} on the same query", "scores to gate on"
            )
        change = now.mean() - before.mean()
        asked = sum(measure in row and row[measure] is not None for row in data["per_query"][system].values())
        only = (
            f", on the {len(now)} of {asked} queries that were there when it was accepted" if len(now) < asked else ""
        )
        found = f"{change:+.4f} ({before.mean():.4f} to {now.mean():.4f}{only})"
        conditions.append(Condition(f"drop of {measure}", f"at most {limit:g}", found, bool(change >= -limit - EQUAL)))
    return GateResult(data["suite"], system, conditions)


def accept(report: Path_, *, system: str | None = None) -> list[str]:
    """Make the system's current run the accepted one: write the baseline file that the suite names.

    Returns
    -------
    list of str
        What changed, in sentences.

    Raises
    ------
    InputError
        If the suite names no baseline file, the run is missing or stale, or the system did not run whole.
    """
    path, data = _read(report)
    system = _system(path, data, system)
    out = path.parent
    ds = load_dataset(out / "suite.yaml")
    target = ds.settings.gate.baseline
    if target is None or not target.endswith(".json"):
        raise InputError(
            out / "suite.yaml", None, "no baseline file", "`gate: {baseline: baseline.json}` in the suite's settings"
        )
    _refuse_changed(path, data, ds)
    run = load_runs(ds, out)[system]
    if run.attrs["status"] != "ok":
        raise InputError(
            path, None, f"{system} {run.attrs['status']} ({run.attrs['reason']})", "a system that ran whole"
        )
    inside = run[run["query_id"].isin(ds.queries["query_id"])]
    lists = {q: inside.loc[inside["query_id"] == q, "doc_id"].tolist() for q in ds.queries["query_id"]}
    old = read_baseline(ds)
    lost = [] if old is None else [q for q in old.attrs["asked"] if q not in lists]
    if lost:
        some = ", ".join(lost[:5]) + (", ..." if len(lost) > 5 else "")
        found = f"a run without {len(lost)} of the accepted queries ({some})"
        raise InputError(
            path, None, found, f"a run of all of them; to start anew, delete {short_path(ds.path(target))}"
        )
    scores = evaluate(ds.qrels, run, ds.measures, queries=ds.queries, conventions=ds.conventions)
    table = means({system: scores}).loc[system]
    record = {
        "system": system,
        "accepted_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "scores": {name: None if value != value else round(float(value), 6) for name, value in table.items()},
        "failed": run.attrs["failed"],
    }
    # One line a list, so that a pull request shows which lists changed.
    rows = ",\n".join(f"  {_json(query_id)}: {_json(ids)}" for query_id, ids in lists.items())
    head = json.dumps(record, indent=1, ensure_ascii=False).removesuffix("\n}")
    io.write_text(ds.path(target), f'{head},\n "lists": {{\n{rows}\n }}\n}}\n')
    return _changes(ds.path(target), system, lists, old, table, ds)


def _refuse_changed(path: Path, data: Mapping[str, Any], ds: Dataset) -> None:
    """What is accepted must be what the report showed."""
    for name, digest in data.get("inputs", {}).items():
        if name != ds.settings.gate.baseline and (not ds.path(name).exists() or sha256_of(ds.path(name)) != digest):
            raise InputError(
                ds.path(name), None, "a file changed since the report", "the one it was made from: run again"
            )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _changes(
    path: Path, system: str, lists: Mapping[str, list[str]], old: pd.DataFrame | None, table: pd.Series, ds: Dataset
) -> list[str]:
    name = short_path(path)
    if old is None:
        answered = sum(map(bool, lists.values()))
        return [f"{name}: accepted {system} with {answered} of {len(lists)} queries answered (the first time)."]
    before = {q: rows["doc_id"].tolist() for q, rows in old.groupby("query_id", sort=False)}
    changed = [q for q, ids in lists.items() if ids != before.get(q, [])]
    said = [
        f"{name}: accepted {system} in place of {old.attrs['system']}; {len(changed)} of {len(lists)} lists changed."
    ]
    if changed:
        said.append("changed: " + ", ".join(changed[:20]) + (" and more" if len(changed) > 20 else ""))
    then = evaluate(ds.qrels, old, ds.measures, queries=ds.queries, conventions=ds.conventions).mean()
    moved = [(m, then[m], table[m]) for m in table.index if abs(then[m] - table[m]) > EQUAL]
    return said + [f"{m}: {a:.4f} to {b:.4f}" for m, a, b in moved]


def _paired(per_query: Mapping[str, Any], system: str, accepted: str, measure: str) -> tuple[pd.Series, pd.Series]:
    """Scores of both on the queries where both have one: a query added since must not look like a gain."""
    both = [
        (row[measure], before[measure])
        for query_id, row in per_query[system].items()
        if (before := per_query[accepted].get(query_id)) is not None
        and row.get(measure) is not None
        and before.get(measure) is not None
    ]
    frame = pd.DataFrame(both, columns=["now", "before"], dtype="float64")
    return frame["now"], frame["before"]


def _read(report: Path_) -> tuple[Path, dict[str, Any]]:
    path = Path(report)
    if path.is_dir():
        path = path / "report.json"
    data = io.read_json(path, _REPORT)
    missing = [k for k in ("settings", "metrics", "per_query", "systems", "suite") if not data.get(k)]
    if missing:
        raise InputError(path, None, f"no `{missing[0]}`", _REPORT)
    return path, data


def _system(path: Path, data: Mapping[str, Any], system: str | None) -> str:
    known = [n for n in data["systems"] if not n.endswith(ACCEPTED)]
    chosen = system or data["settings"]["gate"]["system"]
    if chosen is None:
        raise InputError(
            path, None, "no gated system", f"`gate: {{system: ...}}` in the suite, or --system: {nearest('', known)}"
        )
    if chosen not in known:
        raise InputError(path, None, f"no system {chosen!r}", nearest(chosen, known))
    return str(chosen)
