from __future__ import annotations

import math
from pathlib import Path

import searcheval as se


def table(suite: Path, tmp_path: Path, **overrides: object):
    ds = se.load_dataset(suite, **overrides)
    runs = se.load_runs(ds, tmp_path)
    frame = se.coverage(se.load_labels(ds, tmp_path), runs, ds.queries, documents=ds.documents, depth=ds.settings.depth)
    return frame, se.coverage_notes(frame, runs)


def test_everything_labelled_is_said(suite: Path, tmp_path: Path) -> None:
    frame, notes = table(suite, tmp_path)
    assert frame.loc["old", ["queries", "answered", "results", "judged"]].tolist() == [3, 3, 4, 1.0]
    assert frame.loc["new", "answered"] == 2
    assert "new returned nothing for 1 of 3 queries; they stay in its mean." in notes
    assert any("Every result looked at is labelled." in note for note in notes)


def test_gaps_unknown_documents_ties_and_strangers_are_counted(suite: Path, tmp_path: Path) -> None:
    extra = "q1 Q0 ghost 3 0.5 new\nq1 Q0 d3 4 0.5 new\nq2 Q0 d2 2 0.1 new\nother Q0 d1 1 1 new\n"
    with (suite / "runs" / "new.trec").open("a") as file:
        file.write(extra)
    frame, notes = table(suite, tmp_path)
    row = frame.loc["new"]
    assert (row["results"], row["unknown"], row["tied"], row["ignored"]) == (6, 1, 1, 1)
    assert row["judged"] == 4 / 6
    assert any("33% of new's results are unlabelled" in note for note in notes)
    assert any("from 67% (new) to 100% (old)" in note for note in notes)


def test_depth_limits_what_is_looked_at(suite: Path, tmp_path: Path) -> None:
    frame, _ = table(suite, tmp_path, depth=1)
    assert frame.loc["old", "results"] == 3


def test_a_system_that_was_not_run_has_no_share(suite: Path, tmp_path: Path) -> None:
    (suite / "runs" / "new.trec").write_text("")
    frame, notes = table(suite, tmp_path)
    assert math.isnan(frame.loc["new", "judged"])
    assert notes[0] == "new was not run: no results at all."
