from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import searcheval as se
from searcheval import plots
from searcheval.compare import tally
from searcheval.report import score


def test_means_leave_out_what_is_not_defined() -> None:
    scores = {"a": pd.DataFrame({"RR": [1.0, 0.0], "Abstained": [float("nan"), 1.0]}, index=["q", "r"])}
    keep = pd.DataFrame({"RR": [True, False], "Abstained": [True, False]}, index=["q", "r"])
    assert se.means(scores).loc["a"].tolist() == [0.5, 1.0]
    assert se.means(scores, keep).loc["a", "RR"] == 1.0
    assert pd.isna(se.means(scores, keep).loc["a", "Abstained"])


def test_segments_average_their_own_queries(suite: Path, tmp_path: Path) -> None:
    ds = se.load_dataset(suite)
    scored = score(ds, tmp_path)
    frame = se.by_segment(scored.scores, ds.segment("kind"), "RR")
    assert frame.columns.tolist() == ["colour", "plain", "nothing"]
    assert frame.loc["old"].tolist() == [1.0, 1.0, 0.0]


def test_a_tally_counts_wins_ties_and_losses(suite: Path, tmp_path: Path) -> None:
    scores = score(se.load_dataset(suite), tmp_path).scores
    counted = tally(scores, "new", "old", "nDCG@10")
    assert (counted.n, counted.win, counted.tie, counted.loss) == (3, 1, 2, 0)
    assert counted.diff == pytest.approx((1 - 0.7098) / 3, abs=1e-4)


def test_findings_say_it_either_way(suite: Path, tmp_path: Path) -> None:
    ds = se.load_dataset(suite)
    scored = score(ds, tmp_path)
    said = se.findings(ds, scored.scores, scored.labels)
    assert any(s.startswith("new is higher than old on nDCG@10") for s in said)
    assert "new rightly returns nothing on 1 of 1 queries that have no answer." in said
    assert any("mean RR of 0.667" in s for s in said)
    other = se.load_dataset(suite, systems={"new": "runs/new.trec", "old": "runs/old.trec"}, baseline="new")
    scored = score(other, tmp_path)
    assert any(s.startswith("old is lower than new") for s in se.findings(other, scored.scores, scored.labels))


def test_findings_of_identical_and_of_missing_systems(suite: Path, tmp_path: Path) -> None:
    ds = se.load_dataset(suite, systems={"old": "runs/old.trec", "new": "runs/old.trec"})
    scored = score(ds, tmp_path)
    assert "new and old score the same on every query." in se.findings(ds, scored.scores, scored.labels)
    (suite / "runs" / "new.trec").write_text("")
    ds = se.load_dataset(suite)
    scored = score(ds, tmp_path)
    said = se.findings(ds, scored.scores, scored.labels)
    assert said[0].startswith("new was not run")
    assert not any("new is" in s for s in said)


def test_a_right_to_left_name_is_set_apart_in_a_sentence(suite: Path, tmp_path: Path) -> None:
    ds = se.load_dataset(suite, systems={"قدیم": "runs/old.trec", "جدید": "runs/new.trec"}, gate={"system": None})
    scored = score(ds, tmp_path)
    said = se.findings(ds, scored.scores, scored.labels)
    assert any(s.startswith("\u2068جدید\u2069 is higher than \u2068قدیم\u2069 on") for s in said)
    assert 'dir="rtl"' not in plots.notes(said)._repr_html_()


def test_worst_queries_show_what_should_have_been(suite: Path, tmp_path: Path) -> None:
    ds = se.load_dataset(suite)
    scored = score(ds, tmp_path)
    worst = se.worst_queries(ds, scored.scores, scored.runs, scored.labels, "old")
    assert [query["query_id"] for query, _, _ in worst] == ["q1", "q2"], (
        "q2 misses one relevant document, q3 is perfect"
    )
    _, value, table = worst[0]
    assert value == pytest.approx(0.7098, abs=1e-4)
    assert table["returned"].tolist() == ["Blue shoe", "Red shoe"]
    assert table["ideal"].tolist() == ["Red shoe", "Blue shoe"]


def test_most_disputed_ignores_accepted_runs(suite: Path, tmp_path: Path) -> None:
    ds = se.load_dataset(suite)
    runs = se.load_runs(ds, tmp_path)
    assert se.most_disputed(runs, ds.queries).index.tolist() == ["q1", "q2", "q3"], "on q3 one answers with nothing"
    runs["new@accepted"] = runs["old"].assign(doc_id="zzz")
    assert se.most_disputed(runs, ds.queries)["q2"] == 1
