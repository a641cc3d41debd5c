"""Reading and writing: every format, and one clear line for everything that is not one."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pandas as pd
import pytest

from searcheval import io
from searcheval.errors import InputError


def put(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


RUN = [("q1", "d2", 1), ("q1", "d1", 2), ("q2", "d1", 1)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.run", "q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 0.9 t\nq2 Q0 d1 1 3 t\n"),
        ("mixed.txt", "q1\tQ0  d1 \t1 0.5 t\r\nq1 Q0 d2 2 0.9 t more free text\r\n\r\nq2 Q0 d1 1 3 t"),
        ("zero.run.gz", "# a comment\nq1 Q0 d1 0 0.5 t\nq1 Q0 d2 1 0.9 t\nq2 Q0 d1 0 3 t\n"),
        ("bom.run", "\ufeffq1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 0.9 t\nq2 Q0 d1 1 3 t\n"),
        ("a.csv", "qid,docno,score\nq1,d1,0.5\nq1,d2,0.9\nq2,d1,3\n"),
        ("ranked.csv", "query_id,product_id,rank\nq1,d1,2\nq1,d2,1\nq2,d1,1\n"),
        ("a.tsv", "topic\tdoc_id\tscore\nq1\td1\t0.5\nq1\td2\t0.9\nq2\td1\t3\n"),
        ("a.jsonl", '{"query_id": "q1", "results": [{"doc_id": "d2", "score": 1}, ["d1", 0.5]]}\n'
                    '{"query_id": "q2", "results": [["d1", 0]]}\n'),
        ("bare.jsonl", '{"topic": "q1", "hits": ["d2", "d1"]}\n\n{"topic": "q2", "hits": ["d1"]}\n'),
        ("pairs.jsonl", '{"qid": "q1", "docid": "d1", "score": 0.5}\n{"qid": "q1", "docid": "d2", "score": 0.9}\n'
                        '{"qid": "q2", "docid": "d1", "score": 1}\n'),
    ],
)  # fmt: skip
def test_runs_in_every_format(tmp_path: Path, name: str, text: str) -> None:
    run = io.read_run(put(tmp_path, name, text))
    assert list(run[["query_id", "doc_id", "rank"]].itertuples(index=False, name=None)) == RUN


def test_lists_in_jsonl_keep_their_order_whatever_the_scores(tmp_path: Path) -> None:
    text = '{"query_id": "q", "results": [["a", 1], ["b", 1], ["c", 2]]}'
    assert io.read_run(put(tmp_path, "r.jsonl", text))["doc_id"].tolist() == ["a", "b", "c"]


def test_a_query_answered_with_nothing_is_remembered(tmp_path: Path) -> None:
    path = put(tmp_path, "r.jsonl", '{"query_id": "q", "results": []}\n{"query_id": "p", "results": ["x"]}\n')
    assert io.read_run(path).attrs["answered"] == ["q"]


def test_ties_rank_trusts_the_rank_column(tmp_path: Path) -> None:
    path = put(tmp_path, "r.run", "q Q0 a 1 1.0 t\nq Q0 b 2 1.0 t\nq Q0 c 3 9.0 t\n")
    assert io.read_run(path)["doc_id"].tolist() == ["c", "b", "a"]
    assert io.read_run(path, ties="rank")["doc_id"].tolist() == ["a", "b", "c"]


def test_duplicates_keep_the_better_rank_on_request(tmp_path: Path) -> None:
    path = put(tmp_path, "r.run", "q Q0 a 1 3.0 t\nq Q0 b 2 2.0 t\nq Q0 a 3 1.0 t\n")
    with pytest.raises(InputError, match=r"r\.run:3: found query_id 'q' doc_id 'a' again"):
        io.read_run(path)
    run = io.read_run(path, on_duplicate="first")
    assert list(run[["doc_id", "rank"]].itertuples(index=False, name=None)) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("name", ["empty.run", "empty.jsonl"])
def test_an_empty_run_is_a_system_that_was_not_run(tmp_path: Path, name: str) -> None:
    assert io.read_run(put(tmp_path, name, "")).empty


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("qrels.txt", "q1 0 d1 3\nq1\t0\td2  0\n"),
        ("qrels.tsv", "q1\t0\td1\t3\nq1\t0\td2\t0\n"),
        ("beir.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t3\nq1\td2\t0\n"),
        ("qrels.csv", "query_id,doc_id,grade,reason\nq1,d1,3,\"because, yes\"\nq1,d2,0,\n"),
        ("qrels.jsonl", '{"qid": "q1", "docno": "d1", "label": 3}\n{"qid": "q1", "docno": "d2", "label": 0}\n'),
    ],
)  # fmt: skip
def test_qrels_in_every_format(tmp_path: Path, name: str, text: str) -> None:
    qrels = io.read_qrels(put(tmp_path, name, text))
    rows = list(qrels[["query_id", "doc_id", "relevance"]].itertuples(index=False, name=None))
    assert rows == [("q1", "d1", 3), ("q1", "d2", 0)]


def test_ids_stay_strings(tmp_path: Path) -> None:
    assert io.read_qrels(put(tmp_path, "qrels.csv", "qid,docid,label\n007,010,1\n"))["doc_id"].tolist() == ["010"]
    assert io.read_qrels(put(tmp_path, "qrels.jsonl", '{"qid": 7, "docid": "010", "label": 1}'))[
        "query_id"
    ].tolist() == ["7"]


def test_negative_grades_are_an_error_or_zero(tmp_path: Path) -> None:
    path = put(tmp_path, "qrels.txt", "q 0 a -2\nq 0 b 1\n")
    with pytest.raises(InputError, match=r"qrels\.txt:1: found grade -2"):
        io.read_qrels(path)
    assert io.read_qrels(path, negative="zero")["relevance"].tolist() == [0, 1]


BROKEN = [
    ("run", "r.run", "q Q0 a 1 0.5 t\nq Q0 b 2\n", 2, "4 columns"),
    ("run", "r.run", "q Q0 a 1 nan t\n", 1, "score"),
    ("run", "r.run", "q Q0 a 1 inf t\n", 1, "score"),
    ("run", "r.run", "q Q0 a 1 high t\n", 1, "score 'high'"),
    ("run", "r.jsonl", '{"query_id": "q", "results": ["a"]}\n{"query_id": "r", "results": ["a"}\n', 2, "broken JSON"),
    ("run", "r.jsonl", '{"query_id": "q", "results": ["a", "a"]}\n', 1, "again"),
    ("run", "r.jsonl", '{"query_id": "q", "results": [{"doc_id": "a", "score": NaN}]}\n', 1, "score nan"),
    ("run", "r.jsonl", '{"query_id": "q", "results": [{"score": 1}]}\n', 1, "without a doc_id"),
    ("run", "r.jsonl", '{"query_id": "q", "results": ["a"]}\n{"query_id": "q", "results": ["b"]}\n', 2, "again"),
    ("run", "r.jsonl", '{"query_id": "q", "results": [{"doc_id": "a", "score": 1}, "b"]}\n', 1, "'b' without a score"),
    ("run", "r.jsonl", '["q"]\n', 1, "expected one JSON object a line"),
    ("run", "r.csv", "query_id,doc_id,score\nq,a\n", 2, "2 cells"),
    ("run", "r.csv", "query_id,score\nq,1\n", None, "no column 'doc_id'"),
    ("run", "r.csv", "query_id,doc_id,score\nq,,1\n", 2, "no doc_id"),
    ("run", "r.csv", 'query_id,doc_id,score\nq,"a,1\n', 2, "a broken row"),
    ("qrels", "qrels.txt", "q 0 a 1\nq 0 b 7\n", 2, "grade 7"),
    ("qrels", "qrels.txt", "q 0 a 1\nq 0 b 1.5\n", 2, "grade 1.5"),
    ("qrels", "qrels.txt", "q 0 a 1\n\n# note\nq 0 b one\n", 4, "relevance 'one'"),
    ("qrels", "qrels.txt", "q 0 a 1\nq 0 a 2\n", 2, "again (first on line 1)"),
    ("qrels", "qrels.txt", "", None, "no judgment"),
    ("qrels", "qrels.csv", "query_id,doc_id,relevance\n", None, "no judgment"),
    ("qrels", "qrels.csv", "query_id,doc_id,relevance,grade\nq,a,1,\n", None, None),
    ("qrels", "qrels.csv", "query_id,doc_id,label,grade\nq,a,1,2\n", None, "both a relevance"),
    ("queries", "q.jsonl", "", None, "no query"),
    ("queries", "q.jsonl", '{"qid": "a", "text": "x"}\n{"qid": "a", "text": "y"}\n', 2, "again (first on line 1)"),
    ("queries", "q.jsonl", '{"query_id": "a"}\n', None, "no column 'text'"),
    ("queries", "q.jsonl", '{"query_id": "a", "text": "x"}\n{"query_id": "b", "text": ""}\n', 2, "text ''"),
    ("queries", "q.jsonl", '{"query_id": "a", "query_id": "b", "text": "x"}\n', 1, "key 'query_id' twice"),
    ("queries", "q.csv", "query_id,text\n,x\n", 2, "no query_id"),
    ("documents", "d.jsonl", "", None, "no document"),
    ("documents", "d.jsonl", '{"title": "x"}\n', None, "no column 'doc_id'"),
    ("documents", "d.jsonl", '{"doc_id": 1.5}\n', 1, "doc_id 1.5"),
    ("documents", "d.jsonl", b'{"doc_id": "a"}\n{"doc_id": "\xff"}\n', 2, "not UTF-8"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "text", "line", "said"), BROKEN)
def test_broken_input_is_one_line_that_names_file_and_line(
    tmp_path: Path, kind: str, name: str, text: str | bytes, line: int | None, said: str | None
) -> None:
    path = put(tmp_path, name, text)
    read = getattr(io, f"read_{kind}")
    if said is None:
        read(path)
        return
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert said in message
    assert caught.value.line == line
    assert path.name in message
    assert "\n" not in message


def test_a_missing_file_suggests_its_neighbour(tmp_path: Path) -> None:
    put(tmp_path, "qrels.csv", "")
    with pytest.raises(InputError, match=r"no such file.*did you mean 'qrels\.csv'"):
        io.read_qrels(tmp_path / "qrel.csv")


def test_a_broken_gzip_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "r.run.gz").write_bytes(gzip.compress(b"q Q0 a 1 1 t\n" * 1000)[:-20])
    with pytest.raises(InputError, match="gzip"):
        io.read_run(tmp_path / "r.run.gz")


@pytest.mark.parametrize("name", ["r.run", "r.run.gz", "r.csv", "r.tsv", "r.jsonl"])
def test_what_is_written_reads_back_identically(tmp_path: Path, name: str) -> None:
    run = pd.DataFrame(
        {"query_id": ["q", "q", "ف"], "doc_id": ["b", "a", "007"], "rank": [1, 2, 1], "score": [0.1 + 0.2, 0.1, -1e-9]}
    ).astype({"query_id": "str", "doc_id": "str"})
    io.write_run(run, tmp_path / name)
    pd.testing.assert_frame_equal(io.read_run(tmp_path / name), run)


def test_a_written_trec_file_keeps_the_order_of_tied_scores(tmp_path: Path) -> None:
    run = pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "rank": [1, 2], "score": [1.0, 1.0]})
    io.write_run(run, tmp_path / "r.run")
    assert io.read_run(tmp_path / "r.run")["doc_id"].tolist() == ["a", "b"]


@pytest.mark.parametrize("name", ["qrels.txt", "qrels.csv", "qrels.tsv", "qrels.jsonl"])
def test_written_qrels_read_back_identically(tmp_path: Path, name: str) -> None:
    qrels = pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["b", "007"], "relevance": [3, 0]})
    qrels = qrels.astype({"query_id": "str", "doc_id": "str"})
    io.write_qrels(qrels, tmp_path / name)
    pd.testing.assert_frame_equal(io.read_qrels(tmp_path / name), qrels)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    io.write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        io.write_text(path, "new \ud800")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.txt"]
