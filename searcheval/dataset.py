"""A suite in memory: its queries, documents, judgments and settings, and the runs and labels that its notebooks hand
on."""

from __future__ import annotations

import hashlib
import html
import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import pandas as pd

from searcheval import io, schema
from searcheval.errors import InputError, nearest
from searcheval.io import Path_
from searcheval.metrics import Conventions, Measure
from searcheval.settings import ACCEPTED, CODE, Settings, read_settings, resolve

Search: TypeAlias = Callable[[pd.Series, int], list[tuple[str, float]]]

_SKIP = {".md", ".py", ".yaml", ".yml", ".html", ".ipynb", ".pdf", ".log"}
_DOCUMENTS = ("documents", "corpus", "products", "catalog", "docs")
_QUERIES = ("queries", "topics")


@dataclass(frozen=True, repr=False)
class Dataset:
    """A loaded suite. Show it in a notebook to see what is in it.

    Attributes
    ----------
    settings : Settings
        Resolved; paths in it are relative to `folder`.
    folder : Path
    queries : DataFrame
        ``query_id, text, ...``: those that count (after ``where``).
    documents : DataFrame or None
        ``doc_id, title, text, ...``; None for a suite of run files and qrels alone.
    qrels : DataFrame
        ``query_id, doc_id, relevance, ...`` of those queries.
    overridden : mapping
        What was set on top of the file.
    """

    settings: Settings
    folder: Path
    queries: pd.DataFrame
    documents: pd.DataFrame | None
    qrels: pd.DataFrame
    overridden: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def measures(self) -> list[Measure]:
        """The measures to report, the primary one and the gate's included."""
        return self.settings.parsed_measures()

    @property
    def primary(self) -> str:
        """The canonical name of the measure that decides; the first one unless ``primary`` is set."""
        settings = self.settings
        if settings.primary is None:
            return str(self.measures[0])
        return str(settings.model_copy(update={"measures": [settings.primary]}).parsed_measures()[0])

    @property
    def conventions(self) -> Conventions:
        return self.settings.parsed_conventions()

    @property
    def baseline(self) -> str | None:
        """The system that others are compared with; the first one unless ``baseline`` is set."""
        return self.settings.baseline or next(iter(self.settings.systems), None)

    @property
    def code_systems(self) -> dict[str, str]:
        """Systems that are code, as ``{name: "file.py:factory"}``."""
        return {n: s for n, s in self.settings.systems.items() if CODE.match(s)}

    def path(self, relative: Path_) -> Path:
        """A path of the settings as one that can be opened."""
        return self.folder / relative

    def segment(self, column: str) -> pd.Series:
        """The segment of each query, index ``query_id``; a query without a value is in ``"(none)"``."""
        return self.queries.set_index("query_id")[column].astype(object).fillna("(none)").astype(str)

    def facts(self) -> list[tuple[str, str]]:
        """What is in the suite, as (what, how much) pairs."""
        grades = self.qrels["relevance"].value_counts().sort_index(ascending=False)
        rows = [("queries", f"{len(self.queries)}" + _languages(self.queries))]
        rows += [(f"segment {c}", _counts(self.segment(c))) for c in self.settings.segments]
        if self.documents is not None:
            rows.append(("documents", f"{len(self.documents)}" + _languages(self.documents)))
        scale = ", ".join(f"{n} of grade {g}" for g, n in grades.items())
        rows.append(("judgments", f"{len(self.qrels)} on a scale of 0 to {self.settings.max_grade}: {scale}"))
        rows.append(("systems", ", ".join(self.settings.systems) or "none"))
        rows.append(("baseline", self.baseline or "none"))
        rows.append(("measures", ", ".join(map(str, self.measures)) + f"; {self.primary} decides"))
        if self.overridden:
            rows.append(("overridden", ", ".join(f"{k}: {v}" for k, v in self.overridden.items())))
        return rows

    def __repr__(self) -> str:
        return "\n".join([f"Dataset {self.name}"] + [f"  {what}: {much}" for what, much in self.facts()])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th scope=row>{html.escape(w)}</th><td>{html.escape(m)}</td></tr>" for w, m in self.facts()
        )
        return f'<table class="facts"><caption>Suite {html.escape(self.name)}</caption><tbody>{rows}</tbody></table>'


def load_dataset(suite: Path_, **overrides: Any) -> Dataset:
    """Load a suite.

    Parameters
    ----------
    suite : path
        A folder with a ``suite.yaml``, such a file itself, or any folder with qrels and runs (then the files are found
        by their names and columns).
    **overrides
        Any setting, for example ``depth=20`` or ``gate={"max_drop": 0.01}``.

    Returns
    -------
    Dataset

    Raises
    ------
    InputError
        For anything wrong in a file or a setting, naming file and line.

    Examples
    --------
    >>> ds = load_dataset("../data/services", depth=20)  # doctest: +SKIP
    """
    path = Path(suite)
    file, lines, source = _suite_file(path)
    return make_dataset(resolve(file, overrides, source=source, lines=lines), source, lines, overrides)


def make_dataset(
    settings: Settings, source: Path, lines: Mapping[str, int] | None = None, overrides: Mapping[str, Any] | None = None
) -> Dataset:
    """The dataset that resolved settings describe; ``source`` is the file (or folder) that their paths are relative
    to."""
    folder = source if source.is_dir() else source.parent
    line = (lines or {}).get

    def wrong(key: str, found: str, expected: str) -> InputError:
        return InputError(source, line(key, line(key.split(".")[0])), found, expected)

    qrels_path = folder / settings.qrels
    queries = None if settings.queries is None else io.read_queries(folder / settings.queries)
    qrels = io.read_qrels(qrels_path, max_grade=settings.max_grade, negative=settings.negative, queries=queries)
    if queries is None:
        queries = pd.DataFrame({"query_id": pd.unique(qrels["query_id"])}, dtype="str").assign(text="")
    else:
        unknown = ~qrels["query_id"].isin(queries["query_id"]).to_numpy()
        if unknown.any():
            row = int(unknown.argmax())
            query_id = qrels["query_id"].iloc[row]
            expected = f"a query_id of {settings.queries}"
            raise InputError(
                qrels_path, io.line_of_judgment(qrels_path, row, queries), f"unknown query_id {query_id!r}", expected
            )
    documents = None if settings.documents is None else io.read_documents(folder / settings.documents)
    for column in [*settings.where, *settings.segments]:
        if column not in queries.columns:
            key = f"where.{column}" if column in settings.where else "segments"
            raise wrong(
                key, f"unknown column {column!r}", nearest(column, [c for c in queries.columns if c != "query_id"])
            )
    for column, value in settings.where.items():
        allowed = [str(v) for v in (value if isinstance(value, list) else [value])]
        queries = queries[queries[column].astype(str).isin(allowed)]
        if queries.empty:
            raise wrong(f"where.{column}", f"no query with {column} = {' or '.join(allowed)}", "at least one query")
    for key, name in (("baseline", settings.baseline), ("gate.system", settings.gate.system)):
        if name is not None and name not in settings.systems:
            raise wrong(key, f"unknown system {name!r}", nearest(name, settings.systems))
    chosen = qrels[qrels["query_id"].isin(queries["query_id"])].reset_index(drop=True)
    return Dataset(settings, folder, queries.reset_index(drop=True), documents, chosen, dict(overrides or {}))


def load_system(ds: Dataset, name: str) -> Search:
    """The ``search(query, k)`` function of a code system, made by its factory.

    Raises
    ------
    InputError
        If the file or the factory does not exist. Whatever the factory raises passes through.
    """
    match = CODE.match(ds.settings.systems[name])
    if match is None:
        raise InputError(f"system {name}", None, ds.settings.systems[name], "file.py:factory")
    path = ds.path(match["file"]).resolve()
    if not path.exists():
        raise InputError(ds.path(match["file"]), None, "no such file", "a Python file with the system's factory")
    module = _module(path, sha256_of(path))
    factory = getattr(module, match["factory"], None)
    if not callable(factory):
        known = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise InputError(
            ds.path(match["file"]), None, f"no factory {match['factory']!r}", nearest(match["factory"], known)
        )
    search: Search = factory(ds)
    return search


def load_runs(ds: Dataset, out: Path_) -> dict[str, pd.DataFrame]:
    """The runs of all systems, in the order of the settings, and the accepted run of the gate's baseline if there is
    one.

    A file system's run is read from its file, a code system's from ``<out>/runs``, where notebook 01 wrote it.

    Returns
    -------
    dict of DataFrame
        By system. Each frame's ``attrs`` hold ``status`` (ok, partial or not_run), ``reason`` and ``failed`` (query
        ids).

    Raises
    ------
    InputError
        If a run is missing or was made from other inputs or settings than today's; the notebook to run again is named.
    """
    out = Path(out)
    if not ds.settings.systems:
        raise InputError(ds.folder, None, "no system", "`systems: {NAME: FILE}` in suite.yaml, or -s NAME=FILE")
    recorded = _recorded(ds, out)
    runs: dict[str, pd.DataFrame] = {}
    for name, spec in ds.settings.systems.items():
        if name in ds.code_systems:
            path, record = out / "runs" / f"{name}.jsonl", recorded[name]
            run = io.read_run(path)
            run.attrs |= {key: record[key] for key in ("status", "reason", "failed")}
        else:
            run = io.read_run(ds.path(spec))
            run.attrs |= {"status": "ok", "reason": None, "failed": []}
        runs[name] = _with_status(run, ds)
    accepted = read_baseline(ds)
    if accepted is not None:
        runs[accepted.attrs["system"] + ACCEPTED] = _with_status(accepted, ds)
    return runs


def check_files(ds: Dataset) -> None:
    """Read every run file and the accepted baseline once, for what is wrong in them.

    Raises
    ------
    InputError
        Naming file and line.
    """
    for name, spec in ds.settings.systems.items():
        if name not in ds.code_systems:
            io.read_run(ds.path(spec))
    read_baseline(ds)


def load_labels(ds: Dataset, out: Path_) -> pd.DataFrame:
    """The labels to score with: the gold judgments, one row a pair, ``source`` = gold."""
    return ds.qrels.assign(source="gold") if "source" not in ds.qrels.columns else ds.qrels


def read_baseline(ds: Dataset) -> pd.DataFrame | None:
    """The accepted run in the file that ``gate.baseline`` names, with ``attrs["system"]``; None where there is none.

    Raises
    ------
    InputError
        If the file is not a baseline that ``searcheval gate --accept`` wrote.
    """
    name = ds.settings.gate.baseline
    if name is None or not name.endswith(".json") or not ds.path(name).exists():
        return None
    expected = "a baseline written by `searcheval gate --accept`"
    data = io.read_json(ds.path(name), expected)
    lists, system = data.get("lists"), data.get("system")
    if not isinstance(lists, dict) or not isinstance(system, str):
        raise InputError(ds.path(name), None, "no `system` or no `lists`", expected)
    for query_id, ids in lists.items():
        if not isinstance(ids, list) or not all(isinstance(d, str) for d in ids):
            raise InputError(ds.path(name), None, f"no list of document ids for query {query_id!r}", expected)
    rows = [(q, d) for q, ids in lists.items() for d in ids]
    frame = pd.DataFrame(rows, columns=["query_id", "doc_id"], dtype="str")
    run = schema.as_run(frame, name=os.fspath(ds.path(name)))
    answered = [q for q, ids in lists.items() if not ids]
    run.attrs |= {"system": system, "status": "ok", "reason": None, "failed": data.get("failed", [])}
    # Queries that were added since were never put to it: they are not unanswered.
    run.attrs |= {"answered": answered, "asked": list(lists)}
    return run


def system_stamp(ds: Dataset, name: str) -> str:
    """SHA-256 of everything that a code system's run depends on: queries, documents, its code, ``k`` and ``where``."""
    match = CODE.match(ds.settings.systems[name])
    assert match is not None
    files = [ds.settings.queries, ds.settings.documents, match["file"]]
    parts = {
        "files": [None if f is None else sha256_of(ds.path(f)) for f in files],
        "factory": match["factory"],
        "k": ds.settings.k,
        "where": ds.settings.where,
        "version": metadata.version("searcheval"),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def sha256_of(path: Path_) -> str:
    """SHA-256 of a file, in hexadecimal; of a folder (saved responses), that of its files' names and digests."""
    if Path(path).is_dir():
        files = sorted(p for p in Path(path).iterdir() if p.is_file())
        return hashlib.sha256("".join(f"{p.name} {sha256_of(p)}\n" for p in files).encode()).hexdigest()
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _recorded(ds: Dataset, out: Path) -> dict[str, dict[str, Any]]:
    """What notebook 01 wrote of each code system, checked to be of today's inputs."""
    if not ds.code_systems:
        return {}
    path = out / "systems.json"
    again = "the runs of today's inputs: run notebook 01_seed again"
    if not path.exists():
        raise InputError(path, None, "no runs of the code systems", f"{again} (or `searcheval run`)")
    data = io.read_json(path, again)
    for name in ds.code_systems:
        if name not in data or not (out / "runs" / f"{name}.jsonl").exists():
            raise InputError(path, None, f"no run of system {name!r}", again)
        if data[name].get("stamp") != system_stamp(ds, name):
            raise InputError(path, None, f"a run of {name!r} made from other inputs, code or settings", again)
    return data


def _with_status(run: pd.DataFrame, ds: Dataset) -> pd.DataFrame:
    """A run without a single result in the set was not run: it must never look like a bad system."""
    if run.attrs["status"] != "not_run" and not run["query_id"].isin(ds.queries["query_id"]).any():
        reason = "no results at all" if run.empty else "no results for any query of the set"
        run.attrs |= {"status": "not_run", "reason": run.attrs["reason"] or reason}
    return run


def suite_name(folder: Path) -> str:
    """A folder's name as a suite's name: what a name cannot hold becomes a hyphen."""
    return re.sub(r"[^\w.+ -]", "-", folder.resolve().name).lstrip(".+- ") or "suite"


def _suite_file(path: Path) -> tuple[dict[str, Any], dict[str, int], Path]:
    """The settings written in a suite file, or those found by looking into a bare folder."""
    if path.is_dir() and not (path / "suite.yaml").exists():
        return _discover(path), {}, path
    if path.is_dir():
        path = path / "suite.yaml"
    if not path.exists():
        raise InputError(
            path, None, "no such file or folder", "a suite folder, a suite.yaml, or a folder of qrels and runs"
        )
    data, lines = read_settings(path)
    data.setdefault("name", suite_name(path.parent))
    return data, lines, path


def _discover(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"name": suite_name(folder), "systems": {}}
    qrels: list[str] = []
    for path in sorted(p for p in [*folder.glob("*"), *folder.glob("runs/*")] if p.is_file() and p.name[0] != "."):
        relative = path.relative_to(folder).as_posix()
        stem = path.name.removesuffix(".gz").rsplit(".", 1)[0]
        if path.suffix in _SKIP:
            continue
        if stem.lower() in _QUERIES:
            found["queries"] = relative
        elif stem.lower() in _DOCUMENTS:
            found["documents"] = relative
        elif "qrels" in path.name.lower() or (kind := io.kind_of(path)) == "qrels":
            qrels.append(relative)
        elif path.parent.name == "runs" or kind == "run":
            name = re.sub(r"[^\w.+ -]", "-", stem.removesuffix(".run"))
            if name in found["systems"]:
                other = found["systems"][name]
                raise InputError(folder, None, f"two runs named {name!r} ({other}, {relative})", "names that differ")
            found["systems"][name] = relative
    if len(qrels) != 1:
        what = f"{len(qrels)} qrels files ({', '.join(qrels)})" if qrels else "no qrels"
        raise InputError(folder, None, what, "one file of four columns or with `qrels` in its name, or a suite.yaml")
    found["qrels"] = qrels[0]
    return found


@cache
def _module(path: Path, sha256: str) -> ModuleType:
    """The module in a file, loaded again when its text changes, so that a researcher can edit it beside a running
    kernel."""
    name = "searcheval_suite_" + hashlib.sha256(os.fspath(path).encode()).hexdigest()[:12]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _languages(frame: pd.DataFrame) -> str:
    return f" ({_counts(frame['lang'].fillna('(none)'))})" if "lang" in frame.columns else ""


def _counts(values: pd.Series) -> str:
    return ", ".join(f"{v} {n}" for v, n in values.value_counts(sort=False).items())
