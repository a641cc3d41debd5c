"""Our numbers beside those of ir-measures and ranx, query by query, with a verdict in words."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from searcheval import schema
from searcheval.metrics import DEFAULT, FORMULAS, Conventions, Measure, evaluate, parse_measure

TOLERANCE = 1e-9

Grades: TypeAlias = dict[str, dict[str, int]]
Lists: TypeAlias = dict[str, dict[str, float]]
Values: TypeAlias = dict[str, float]

AGREES, CONVENTION, DISAGREES, ABSENT = "agrees", "differs by convention", "disagrees", "cannot compare"


@dataclass(frozen=True)
class Reference:
    """Another tool: what it calls a measure (or why it cannot be compared), and how it is asked."""

    name: str
    package: str
    translate: Callable[[Measure, int], tuple[str | None, str]]
    values: Callable[[Grades, Lists, list[str]], dict[str, Values]]


def crosscheck(
    qrels: pd.DataFrame | Mapping[str, Mapping[str, int]],
    run: pd.DataFrame | Mapping[str, pd.DataFrame],
    measures: Iterable[str | Measure],
    *,
    queries: pd.DataFrame | Iterable[str] | None = None,
    conventions: Conventions = DEFAULT,
) -> pd.DataFrame:
    """Compare our values with those of each reference, for every measure that it has.

    All three get the same strict order (scores replaced by falling numbers) and the same judged queries, so that
    neither ties nor missing queries make a difference.

    Parameters
    ----------
    qrels, run, measures, queries, conventions
        As for :func:`searcheval.evaluate`.

    Returns
    -------
    DataFrame
        A row a system, measure and reference: ``system, measure, reference, called`` (its name there), ``queries``
        (compared), ``largest`` (difference, once conventions are the same), ``verdict`` (*agrees*: all within 1e-9;
        *differs by convention*; *disagrees*; *cannot compare*) and ``note``, which says which convention on which
        queries, with both numbers, or why there is nothing to compare.

    Examples
    --------
    >>> table = crosscheck({"q": {"a": 1}}, schema.as_run({"q": {"a": 1.0}}), ["RR"])  # doctest: +SKIP
    """
    judged = schema.as_qrels(qrels, max_grade=None)
    runs = {"run": run} if isinstance(run, pd.DataFrame) else dict(run)
    chosen = [parse_measure(m) for m in measures]
    kept = judged if queries is None else judged[judged["query_id"].isin(_ids(queries))]
    if kept.empty:
        return _table([])
    grades = _nested(kept, kept["relevance"].tolist())
    ours = evaluate(kept, runs, chosen, conventions=conventions)
    plain = evaluate(kept, runs, chosen, conventions=Conventions("zero", conventions.judged_only))
    rows = []
    for name, frame in runs.items():
        if ours[name].attrs["not_run"]:
            continue
        lists = _lists(frame, grades)
        condensed = {q: {d: s for d, s in ranked.items() if d in grades[q]} for q, ranked in lists.items()}
        scored = {q: ranked for q, ranked in condensed.items() if ranked} if conventions.judged_only else lists
        failed = set(frame.attrs.get("failed", []))
        keep = [q for q in grades if q not in failed]
        for reference in REFERENCES:
            rows += _compare(
                name, reference, chosen, grades, (lists, scored), ours[name].loc[keep], plain[name].loc[keep]
            )
    return _table(rows)


def _compare(
    system: str,
    reference: Reference,
    measures: list[Measure],
    grades: Grades,
    lists: tuple[Lists, Lists],
    ours: pd.DataFrame,
    plain: pd.DataFrame,
) -> list[dict[str, Any]]:
    top = max(max(judged.values()) for judged in grades.values())
    called = {str(m): reference.translate(m, top) for m in measures}
    theirs: dict[str, Values] = {}
    try:
        version = metadata.version(reference.package)
        for ranked, counting in zip(lists, (True, False), strict=True):
            # What counts results looks at whole lists, everything else at condensed ones if these are asked for.
            wanted = [called[str(m)][0] for m in measures if (FORMULAS[m.name].kind == "count") == counting]
            theirs |= reference.values(grades, ranked, list(dict.fromkeys(n for n in wanted if n is not None)))
    except (ImportError, metadata.PackageNotFoundError):
        called = dict.fromkeys(called, (None, f"{reference.package} is not installed"))
        version = ""
    rows = []
    for measure, (name, why) in called.items():
        row = {"system": system, "measure": measure, "reference": f"{reference.name} {version}".strip()}
        if name is None:
            rows.append(row | {"called": "", "queries": 0, "largest": np.nan, "verdict": ABSENT, "note": why})
            continue
        # A query that a reference leaves out is one without results: 0 there.
        other = pd.Series(theirs[name], dtype="float64").reindex(plain.index).fillna(0.0)
        apart = (plain[measure] - other).abs()
        convention = (ours[measure] - plain[measure]).abs() > TOLERANCE
        wrong = apart > TOLERANCE
        verdict = DISAGREES if wrong.any() else CONVENTION if convention.any() else AGREES
        note = _differences(wrong, plain[measure], other, "") if wrong.any() else why
        if verdict == CONVENTION:
            note = _differences(convention, ours[measure], other, "nothing relevant is judged: ")
        counted = {"queries": len(plain), "largest": float(apart.max()), "verdict": verdict, "note": note}
        rows.append(row | {"called": name} | counted)
    return rows


def _differences(where: pd.Series, ours: pd.Series, theirs: pd.Series, why: str) -> str:
    ids = where.index[where].tolist()
    shown = ", ".join(f"{q} (ours {ours[q]:.6g}, theirs {theirs[q]:.6g})" for q in ids[:5])
    return f"{why}{shown}" + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")


def _ids(queries: pd.DataFrame | Iterable[str]) -> Iterable[str]:
    return queries["query_id"] if isinstance(queries, pd.DataFrame) else list(queries)


def _nested(frame: pd.DataFrame, values: list[Any]) -> dict[str, dict[str, Any]]:
    nested: dict[str, dict[str, Any]] = {}
    for query_id, doc_id, value in zip(frame["query_id"].tolist(), frame["doc_id"].tolist(), values, strict=True):
        nested.setdefault(query_id, {})[doc_id] = value
    return nested


def _lists(run: pd.DataFrame, grades: Grades) -> Lists:
    """The run's lists in strict order: scores that fall by one from rank to rank."""
    frame = run if "rank" in run else schema.as_run(run)
    inside = frame[frame["query_id"].isin(grades)]
    return _nested(inside, (-inside["rank"]).astype("float64").tolist())


def _table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(
        rows, columns=["system", "measure", "reference", "called", "queries", "largest", "verdict", "note"]
    )


# --------------------------------------------------------------------------------------------------------- ir-measures

_IR_NAMES = {"RR": "RR", "R": "R", "P": "P", "AP": "AP", "RPrec": "Rprec", "Success": "Success", "Bpref": "Bpref"}


def _to_ir_measures(measure: Measure, top: int) -> tuple[str | None, str]:
    cut = f"@{measure.cutoff}" if measure.cutoff else ""
    if measure.name == "nDCG":
        if measure.params["gain"] == "linear":
            return f"nDCG{cut}", ""
        # Through trec_eval, with the gains spelled out; `dcg='exp-log2'` would call a Perl script.
        gains = ",".join(f"{g}:{2**g - 1}" for g in range(1, top + 1))
        return f"nDCG(gains='{gains}'){cut}", "" if top <= 30 else "grades too high for integer gains"
    if measure.name in _IR_NAMES:
        rel = f"(rel={measure.rel})" if measure.rel != 1 else ""
        return f"{_IR_NAMES[measure.name]}{rel}{cut}", ""
    if measure.name in ("Judged", "NumRet"):
        return f"{measure.name}{cut}", ""
    why = {
        "ERR": "there it is a Perl script that fixes 2^max at 16 and prints five digits",
        "RBP": "there it needs a package of its own",
        "F1": "it has no F1 at a cut-off",
        "Abstained": "it has no such measure",
    }
    return None, why[measure.name]


def _ask_ir_measures(grades: Grades, lists: Lists, names: list[str]) -> dict[str, Values]:
    import ir_measures
    from ir_measures import nDCG

    def parsed(name: str) -> Any:
        if "gains=" not in name:
            return ir_measures.parse_measure(name)
        pairs, _, cut = name.partition("gains='")[2].partition("')")
        gains = {int(g): int(v) for g, v in (pair.split(":") for pair in pairs.split(","))} if pairs else {1: 1}
        measure = nDCG(gains=gains)
        return measure @ int(cut[1:]) if cut else measure

    values: dict[str, Values] = {name: {} for name in names}
    # Apart, for in one call with explicit gains it may score the plain nDCG by those gains too.
    for group in ([n for n in names if "gains=" in n], [n for n in names if "gains=" not in n]):
        asked = {parsed(name): name for name in group}
        if lists and asked:
            for found in ir_measures.iter_calc(list(asked), grades, lists):
                values[asked[found.measure]][found.query_id] = float(found.value)
    return values


# ---------------------------------------------------------------------------------------------------------------- ranx

_RANX_NAMES = {
    "RR": "mrr",
    "R": "recall",
    "P": "precision",
    "AP": "map",
    "RPrec": "r-precision",
    "Success": "hit_rate",
    "F1": "f1",
}


def _to_ranx(measure: Measure, top: int) -> tuple[str | None, str]:
    cut = f"@{measure.cutoff}" if measure.cutoff else ""
    if measure.name == "nDCG":
        return f"ndcg{'_burges' if measure.params['gain'] == 'exp' else ''}{cut}", ""
    if measure.name in _RANX_NAMES:
        level = f"-l{measure.rel}" if measure.rel != 1 else ""
        return f"{_RANX_NAMES[measure.name]}{cut}{level}", ""
    if measure.name == "RBP" and measure.cutoff is None and measure.rel == 1:
        percent = measure.params["p"] * 100
        if abs(percent - round(percent)) > 1e-9:
            return None, "there p is a whole number of hundredths"
        # It multiplies by the grade: asked with grades made 0 or 1, it is the same measure.
        return f"rbp.{round(percent):02d}", "asked with grades of 1 and more made 1"
    why = {
        "RBP": "there it has neither a cut-off nor a threshold",
        "ERR": "it has no expected reciprocal rank",
        "Bpref": "there it is undefined without judged irrelevant documents, which spoils other queries",
        "Judged": "it has no such measure",
        "NumRet": "it has no such measure",
        "Abstained": "it has no such measure",
    }
    return None, why[measure.name]


def _ask_ranx(grades: Grades, lists: Lists, names: list[str]) -> dict[str, Values]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba's, on its first compilation
        from ranx import Qrels, Run
        from ranx import evaluate as ranx_evaluate

        values: dict[str, Values] = {}
        for binary in (False, True):
            chosen = [n for n in names if n.startswith("rbp") == binary]
            if not chosen:
                continue
            judged = {q: {d: min(g, 1) for d, g in docs.items()} for q, docs in grades.items()} if binary else grades
            # Every query needs a list there; one without results gets a document that nobody judged.
            filled = {q: lists.get(q) or {"\0no result": 0.0} for q in grades}
            run = Run(filled)
            ranx_evaluate(Qrels(judged), run, chosen, return_mean=False, make_comparable=True)
            values |= {n: {q: float(v) for q, v in run.scores[n].items()} for n in chosen}
    return values


REFERENCES = [
    Reference("ir-measures", "ir-measures", _to_ir_measures, _ask_ir_measures),
    Reference("ranx", "ranx", _to_ranx, _ask_ranx),
]
