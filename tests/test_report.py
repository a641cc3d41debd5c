from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import searcheval as se
from searcheval.report import markdown_table

KEYS = {
    *("schema", "suite", "generated_at", "settings", "inputs", "environment", "systems", "labels", "metrics"),
    *("answerable", "intervals", "segments", "per_query", "coverage", "crosscheck", "overlap", "pool", "judging"),
    *("comparisons", "pairwise", "verdict"),
}


def written(suite: Path, out: Path, **overrides: object) -> dict:
    se.write_report(se.load_dataset(suite, **overrides), out)
    return json.loads((out / "report.json").read_text(encoding="utf-8"))


def test_a_report_has_every_key_sorted_and_no_path_of_this_machine(suite: Path, tmp_path: Path) -> None:
    report = written(suite, tmp_path / "out")
    assert list(report) == sorted(KEYS)
    text = (tmp_path / "out" / "report.json").read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    assert "NaN" not in text


def test_two_runs_differ_in_their_time_only(suite: Path, tmp_path: Path) -> None:
    texts = []
    for out in (tmp_path / "a", tmp_path / "b"):
        written(suite, out)
        lines = (out / "report.json").read_text(encoding="utf-8").splitlines()
        texts.append([line for line in lines if '"generated_at"' not in line])
    assert texts[0] == texts[1]


def test_a_report_holds_the_scores(suite: Path, tmp_path: Path) -> None:
    report = written(suite, tmp_path)
    assert report["metrics"]["new"]["RR"] == pytest.approx(2 / 3)
    assert report["answerable"]["new"]["RR"] == 1
    assert report["per_query"]["old"]["q1"]["nDCG@10"] == pytest.approx(0.7098, abs=1e-4)
    assert report["per_query"]["old"]["q1"]["Abstained"] is None
    assert report["segments"]["kind"]["nothing"] == {
        "n": 1,
        "metrics": {"old": {"nDCG@10": 1, "RR": 0, "Abstained": 0}, "new": {"nDCG@10": 1, "RR": 0, "Abstained": 1}},
    }
    assert report["labels"] | {"sha256": ""} == {"gold": 7, "judged": 0, "unlabelled": 0, "sha256": ""}
    assert report["coverage"]["new"]["answered"] == 2
    assert set(report["inputs"]) == {"queries.jsonl", "documents.jsonl", "qrels.csv", "runs/old.trec", "runs/new.trec"}


def test_a_system_that_was_not_run_has_null_scores(suite: Path, tmp_path: Path) -> None:
    (suite / "runs" / "new.trec").write_text("")
    report = written(suite, tmp_path)
    assert report["systems"]["new"]["status"] == "not_run"
    assert set(report["metrics"]["new"].values()) == {None}


def test_the_markdown_report_holds_the_same_facts(suite: Path, tmp_path: Path) -> None:
    report = written(suite, tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert f"| new | {report['metrics']['new']['nDCG@10']:.3f} | {report['metrics']['new']['RR']:.3f} |" in text
    assert "## Label coverage" in text
    assert text.index("## Label coverage") < text.index("## Scores")
    assert "Highest possible mean over all queries: RR 0.667" in text


def test_a_folder_of_saved_responses_is_a_system(suite: Path, tmp_path: Path) -> None:
    saved = suite / "runs" / "saved"
    saved.mkdir()
    (saved / "q1.json").write_text('{"hits": {"hits": [{"_id": "d1", "_score": 1.5}]}}')
    report = written(suite, tmp_path, systems={"saved": "runs/saved"}, gate={"system": None})
    assert report["per_query"]["saved"]["q1"]["RR"] == 1
    assert len(report["inputs"]["runs/saved"]) == 64


def test_a_failed_query_is_named_in_both(suite: Path, tmp_path: Path) -> None:
    (suite / "systems.py").write_text(
        "def make(ds):\n    return lambda q, k: [('d1', 1.0)] if q['query_id'] != 'q2' else 1 / 0\n"
    )
    ds = se.load_dataset(suite, systems={"old": "runs/old.trec", "new": "systems.py:make"})
    se.run_systems(ds, tmp_path)
    report = se.write_report(ds, tmp_path)
    assert report["systems"]["new"]["failed"] == ["q2"]
    assert "new failed on q2" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_markdown_cells_cannot_break_their_table() -> None:
    frame = pd.DataFrame({"a|b": ["x|y\nz"]}, index=pd.Index(["s"], name="system"))
    assert markdown_table(frame).splitlines()[-1] == "| s | x\\|y z |"
