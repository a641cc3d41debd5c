"""A small suite of files, written anew for each test that wants to break it."""

from __future__ import annotations

from pathlib import Path

import pytest

QUERIES = """\
{"query_id": "q1", "text": "red shoes", "kind": "colour", "lang": "en"}
{"query_id": "q2", "text": "کفش", "kind": "plain", "lang": "fa"}
{"query_id": "q3", "text": "submarine", "kind": "nothing", "lang": "en"}
"""
DOCUMENTS = """\
{"doc_id": "d1", "title": "Red shoe", "text": "A shoe that is red."}
{"doc_id": "d2", "title": "Blue shoe", "text": "A shoe that is blue."}
{"doc_id": "d3", "title": "کفش سیاه", "text": "کفش"}
"""
QRELS = """\
query_id,doc_id,relevance,reason
q1,d1,3,
q1,d2,1,a shoe but blue
q1,d3,0,
q2,d3,3,
q2,d1,2,
q3,d1,0,
q3,d2,0,
"""
SUITE = """\
name: shoes
queries: queries.jsonl
documents: documents.jsonl
qrels: qrels.csv
systems:
  old: runs/old.trec
  new: runs/new.trec
measures: [nDCG@10, RR, Abstained]
segments: [kind]
gate:
  system: new
  baseline: baseline.json
  max_drop: 0.02
"""
OLD = "q1 Q0 d2 1 2.0 old\nq1 Q0 d1 2 1.0 old\nq2 Q0 d3 1 1.0 old\nq3 Q0 d2 1 1.0 old\n"
NEW = "q1 Q0 d1 1 2.0 new\nq1 Q0 d2 2 1.0 new\nq2 Q0 d3 1 1.0 new\n"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A whole suite of files in a folder: three queries, three documents, two runs."""
    folder = tmp_path / "shoes"
    (folder / "runs").mkdir(parents=True)
    for name, text in {
        "queries.jsonl": QUERIES,
        "documents.jsonl": DOCUMENTS,
        "qrels.csv": QRELS,
        "suite.yaml": SUITE,
        "runs/old.trec": OLD,
        "runs/new.trec": NEW,
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Two TREC runs and a qrels file in an otherwise empty folder."""
    folder = tmp_path / "bare"
    folder.mkdir()
    (folder / "judged.txt").write_text("q1 0 d1 3\nq1 0 d2 1\nq2 0 d3 3\nq3 0 d1 0\n")
    (folder / "old.run").write_text(OLD)
    (folder / "new.run").write_text(NEW)
    return folder
