"""Ourselves against ir-measures and ranx, on random and on real data; and what the verdicts say."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import searcheval as se
from searcheval import crosscheck as check
from searcheval.crosscheck import REFERENCES
from searcheval.metrics import Conventions

SHARED = [
    "nDCG@10", "nDCG@3", "nDCG", "nDCG(gain=linear)@10", "nDCG(gain=linear)", "RR", "RR@2", "RR(rel=2)", "R@20", "R@2",
    "R(rel=2)@5", "P@10", "P@1", "P(rel=2)@5", "AP", "AP@3", "AP(rel=2)", "RPrec", "RPrec(rel=2)", "Success@5",
    "Success@1", "Judged@10", "RBP(p=0.8)", "RBP(p=0.5)", "Bpref", "F1@10", "F1(rel=2)@3", "NumRet",
]  # fmt: skip
ROBUST = Path(__file__).parents[2] / "shared" / "data" / "robust03"

IDS = st.sampled_from(["d1", "d2", "007", "7", "1e3", "é", "خ", "long-id", "A", "a", "B", "-1"])
QUERIES = ["q1", "q2", "010", "10", "ف"]
GRADES = st.integers(0, 3)
GRADED = st.dictionaries(st.sampled_from(QUERIES), st.dictionaries(IDS, GRADES, min_size=1, max_size=9), min_size=1)
SCORES = st.sampled_from([0.0, 0.5, 1.0, 1.00000001, 2.5, -1.0])
LISTS = st.dictionaries(
    st.sampled_from([*QUERIES, "other"]), st.dictionaries(IDS, SCORES, min_size=1, max_size=9), min_size=1
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(GRADED, LISTS)
def test_every_shared_measure_agrees_on_random_data(
    qrels: dict[str, dict[str, int]], lists: dict[str, dict[str, float]]
) -> None:
    table = check(qrels, se.as_run(lists), SHARED, conventions=Conventions("zero"))
    assert set(table["verdict"]) <= {"agrees", "cannot compare"}, table[table["verdict"] == "disagrees"].to_dict(
        "records"
    )


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(GRADED, LISTS, st.booleans())
def test_our_defaults_differ_by_a_named_convention_at_most(
    qrels: dict[str, dict[str, int]], lists: dict[str, dict[str, float]], judged_only: bool
) -> None:
    table = check(qrels, se.as_run(lists), SHARED, conventions=Conventions("perfect", judged_only))
    assert "disagrees" not in set(table["verdict"])
    differs = table[table["verdict"] == "differs by convention"]
    assert differs["note"].str.startswith("nothing relevant is judged: ").all()


def test_ten_thousand_deep_lists_agree() -> None:
    docs = [f"{i}" for i in range(10_000)]
    lists = {"q": {d: float(i % 100) for i, d in enumerate(docs)}}
    qrels = {"q": {d: i % 4 for i, d in enumerate(docs[::7])}}
    table = check(qrels, se.as_run(lists), SHARED)
    assert set(table["verdict"]) == {"agrees", "cannot compare"}


def test_a_single_document() -> None:
    table = check({"q": {"d": 3}}, se.as_run({"q": {"d": 1.0}}), SHARED)
    assert set(table["verdict"]) == {"agrees", "cannot compare"}


def test_the_convention_is_named_with_both_numbers() -> None:
    qrels = {"q": {"a": 1}, "none": {"a": 0}}
    table = check(qrels, se.as_run({"q": {"a": 1.0}}), ["nDCG@10", "RR"]).set_index(["measure", "reference"])
    row = table.xs("nDCG@10").iloc[0]
    assert row["verdict"] == "differs by convention"
    assert row["note"] == "nothing relevant is judged: none (ours 1, theirs 0)"
    assert set(table.xs("RR")["verdict"]) == {"agrees"}


def test_a_wrong_number_is_a_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    first = REFERENCES[0]
    wrong = type(first)(first.name, first.package, first.translate, lambda *_: {"RR": {"q": 0.25}})
    monkeypatch.setattr(sys.modules["searcheval.crosscheck"], "REFERENCES", [wrong])
    row = check({"q": {"a": 1}}, se.as_run({"q": {"a": 1.0}}), ["RR"]).iloc[0]
    assert (row["verdict"], row["note"]) == ("disagrees", "q (ours 1, theirs 0.25)")


def test_what_cannot_be_compared_says_why() -> None:
    table = check({"q": {"a": 1}}, se.as_run({"q": {"a": 1.0}}), ["ERR@10", "Abstained", "Bpref"])
    absent = table[table["verdict"] == "cannot compare"]
    assert len(absent) == 5, "all but Bpref by ir-measures"
    assert (absent["note"] != "").all()


def test_a_system_that_was_not_run_and_failed_queries_take_no_part() -> None:
    run = se.as_run({"q": {"a": 1.0}})
    run.attrs["failed"] = ["r"]
    nothing = run.iloc[:0]
    table = check({"q": {"a": 1}, "r": {"a": 1}}, {"ran": run, "nothing": nothing}, ["nDCG@10"])
    assert set(table["system"]) == {"ran"}
    assert set(table["queries"]) == {1}


@pytest.mark.skipif(not ROBUST.is_dir(), reason="the TREC 2003 Robust data is not here")
def test_all_robust_runs_agree_on_every_shared_measure() -> None:
    qrels = se.read_qrels(ROBUST / "qrels.txt.gz")
    runs = {path.name.split(".")[0]: se.read_run(path) for path in sorted((ROBUST / "runs").glob("*.gz"))}
    assert len(runs) == 5
    table = check(qrels, runs, SHARED, conventions=Conventions("zero"))
    assert set(table["verdict"]) == {"agrees", "cannot compare"}
    assert table["largest"].max() < 1e-12


def test_an_empty_set_of_queries_gives_an_empty_table() -> None:
    assert check({"q": {"a": 1}}, se.as_run({"q": {"a": 1.0}}), ["RR"], queries=["other"]).empty
    assert isinstance(check({"q": {"a": 1}}, {}, ["RR"]), pd.DataFrame)
