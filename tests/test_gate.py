from __future__ import annotations

import json
from pathlib import Path

import pytest

import searcheval as se
from searcheval.errors import InputError
from searcheval.gate import accept, gate


def reported(suite: Path, **overrides: object) -> Path:
    """A report in a folder that also holds the resolved settings, as the runner leaves it."""
    out = suite.parent / "out"
    out.mkdir(exist_ok=True)
    ds = se.load_dataset(suite, **overrides)
    (out / "suite.yaml").write_text(json.dumps(ds.settings.moved(suite, out).model_dump()))
    se.write_report(se.load_dataset(out / "suite.yaml"), out)
    return out


def test_without_an_accepted_run_there_is_no_evidence(suite: Path) -> None:
    with pytest.raises(InputError, match="no accepted run of new"):
        gate(reported(suite))


def test_an_unchanged_run_passes(suite: Path) -> None:
    out = reported(suite)
    assert "the first time" in accept(out)[0]
    result = gate(reported(suite))
    assert result.passed
    assert [c.condition for c in result.conditions] == ["drop of nDCG@10"]


def test_a_drop_beyond_the_limit_fails_and_within_it_passes(suite: Path) -> None:
    accept(reported(suite))
    (suite / "runs" / "new.trec").write_text((suite / "runs" / "old.trec").read_text())
    out = reported(suite)
    result = gate(out)
    assert not result.passed
    assert result.conditions[0].found.startswith("-0.0967")
    assert gate(out, max_drop=0.1).passed
    assert not gate(out, max_drop=0.09).passed


def test_a_drop_of_exactly_the_limit_passes(suite: Path) -> None:
    (suite / "runs" / "new.trec").write_text("q1 Q0 d1 1 1.0 new\nq1 Q0 d2 2 0.5 new\nq3 Q0 d1 1 1.0 new\n")
    accept(reported(suite, gate={"measures": ["RR"]}))
    (suite / "runs" / "new.trec").write_text("q1 Q0 d3 1 1.0 new\nq1 Q0 d2 2 0.5 new\nq3 Q0 d1 1 1.0 new\n")
    out = reported(suite, gate={"measures": ["RR"]})  # RR of q1 falls from 1 to 1/2: the mean of three by 1/6
    assert gate(out, max_drop=1 / 6).passed


def test_a_change_of_labels_is_no_change_of_ranking(suite: Path) -> None:
    accept(reported(suite))
    text = (suite / "qrels.csv").read_text().replace("q1,d1,3,", "q1,d1,0,").replace("q1,d2,1,", "q1,d2,3,")
    (suite / "qrels.csv").write_text(text)
    result = gate(reported(suite))
    assert result.passed
    assert result.conditions[0].found.startswith("+0.0000")


def test_accepting_says_what_changed(suite: Path) -> None:
    accept(reported(suite))
    (suite / "runs" / "new.trec").write_text((suite / "runs" / "old.trec").read_text())
    said = accept(reported(suite))
    assert "2 of 3 lists changed" in said[0]
    assert said[1] == "changed: q1, q3"
    assert any(line.startswith("nDCG@10: 0.") for line in said)
    assert gate(reported(suite)).passed


@pytest.mark.parametrize(
    "broken", ["new was not run", "new is partial", "accepted elsewhere", "measure absent", "no report", "no json"]
)
def test_missing_evidence_is_never_a_pass(suite: Path, broken: str) -> None:
    accept(reported(suite))
    out = reported(suite)
    if broken == "new was not run":
        (suite / "runs" / "new.trec").write_text("")
        out = reported(suite)
    elif broken == "new is partial":
        report = json.loads((out / "report.json").read_text())
        report["systems"]["new"] |= {"status": "partial", "reason": "an arm is missing"}
        (out / "report.json").write_text(json.dumps(report))
    elif broken == "accepted elsewhere":
        with pytest.raises(InputError, match="no accepted run of old"):
            gate(out, system="old")
    elif broken == "measure absent":
        report = json.loads((out / "report.json").read_text())
        report["settings"]["gate"]["measures"] = ["P@7"]
        (out / "report.json").write_text(json.dumps(report))
    elif broken == "no report":
        (out / "report.json").unlink()
    else:
        (out / "report.json").write_text("{")
    if broken != "accepted elsewhere":
        with pytest.raises(InputError):
            gate(out)


def test_a_query_added_since_cannot_hide_a_drop(suite: Path) -> None:
    accept(reported(suite))
    with (suite / "queries.jsonl").open("a") as file:
        file.write('{"query_id": "q4", "text": "blue", "kind": "colour", "lang": "en"}\n')
    with (suite / "qrels.csv").open("a") as file:
        file.write("q4,d2,3,\n")
    (suite / "runs" / "new.trec").write_text((suite / "runs" / "old.trec").read_text() + "q4 Q0 d2 1 1.0 new\n")
    result = gate(reported(suite))
    assert not result.passed, "q4 is perfect, but the accepted run was never asked it"
    assert "on the 3 of 4 queries" in result.conditions[0].found


@pytest.mark.parametrize("lists", [{"q1": "d1"}, {"q1": [1, 2]}, [1, 2]])
def test_a_baseline_that_is_no_list_of_ids_is_refused(suite: Path, lists: object) -> None:
    (suite / "baseline.json").write_text(json.dumps({"system": "new", "lists": lists}))
    with pytest.raises(InputError, match=r"baseline\.json"):
        reported(suite)


def test_a_run_on_fewer_queries_cannot_replace_the_baseline(suite: Path) -> None:
    accept(reported(suite))
    before = (suite / "baseline.json").read_text()
    with pytest.raises(InputError, match=r"without 2 of the accepted queries \(q1, q3\)"):
        accept(reported(suite, where={"lang": "fa"}))
    assert (suite / "baseline.json").read_text() == before


def test_what_is_accepted_is_what_the_report_showed(suite: Path) -> None:
    out = reported(suite)
    (suite / "runs" / "new.trec").write_text((suite / "runs" / "old.trec").read_text())
    with pytest.raises(InputError, match=r"new\.trec.*changed since the report"):
        accept(out)


@pytest.mark.parametrize("damage", ["max_drop", "metrics", "gate", "per_query"])
def test_a_damaged_report_is_an_input_error(suite: Path, damage: str) -> None:
    accept(reported(suite))
    out = reported(suite)
    report = json.loads((out / "report.json").read_text())
    if damage == "max_drop":
        report["settings"]["gate"]["max_drop"] = "much"
    elif damage == "metrics":
        report["per_query"]["new"]["q1"]["nDCG@10"] = "high"
    elif damage == "gate":
        del report["settings"]["gate"]
    else:
        report["per_query"] = [1]
    (out / "report.json").write_text(json.dumps(report))
    with pytest.raises(InputError):
        gate(out)


@pytest.mark.parametrize("limit", [float("inf"), float("nan"), -0.1])
def test_a_limit_that_is_no_limit_is_refused(suite: Path, limit: float) -> None:
    accept(reported(suite))
    with pytest.raises(InputError, match="max_drop"):
        gate(reported(suite), max_drop=limit)


def test_an_unknown_system_suggests_the_nearest(suite: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'new'"):
        gate(reported(suite), system="neww")


def test_a_system_that_did_not_run_whole_cannot_be_accepted(suite: Path) -> None:
    (suite / "runs" / "new.trec").write_text("")
    with pytest.raises(InputError, match="not_run"):
        accept(reported(suite))
    assert not (suite / "baseline.json").exists()


def test_queries_answered_with_nothing_stay_so_in_the_baseline(suite: Path) -> None:
    accept(reported(suite))
    assert json.loads((suite / "baseline.json").read_text())["lists"]["q3"] == []
    report = se.write_report(se.load_dataset(suite), suite.parent / "out")
    assert report["metrics"]["new@accepted"]["Abstained"] == 1
