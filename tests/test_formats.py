"""The formats that other tools write: search responses, nested dicts, Parquet, Quepid's CSV; and memory."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from searcheval import io
from searcheval.errors import InputError
from searcheval.timing import peak_memory

RUN = [("q1", "d2", 1), ("q1", "d1", 2), ("q2", "d1", 1)]


def response(*hits: tuple[str, float | None]) -> dict:
    found = [{"_index": "i", "_id": d, "_score": s, "_source": {"title": "x"}} for d, s in hits]
    return {"took": 3, "hits": {"total": {"value": len(hits)}, "hits": found}}


def rows(run: pd.DataFrame) -> list[tuple[str, str, int]]:
    return list(run[["query_id", "doc_id", "rank"]].itertuples(index=False, name=None))


ONE, TWO = response(("d2", 2.0), ("d1", 1.0)), response(("d1", 3.0))
UNSCORED = response(("d2", None), ("d1", None)), response(("d1", None))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("lines.jsonl", [{"query_id": "q1", **ONE}, {"query_id": "q2", **TWO}]),
        ("wrapped.jsonl", [{"qid": "q1", "response": ONE}, {"qid": "q2", "response": TWO}]),
        ("sorted.jsonl", [{"query_id": "q1", **UNSCORED[0]}, {"query_id": "q2", **UNSCORED[1]}]),
    ],
)
def test_search_responses_a_line(tmp_path: Path, name: str, data: list[dict]) -> None:
    (tmp_path / name).write_text("".join(json.dumps(r) + "\n" for r in data))
    assert rows(io.read_run(tmp_path / name)) == RUN


@pytest.mark.parametrize("indent", [None, 2])
def test_search_responses_in_one_object_and_nested_dicts(tmp_path: Path, indent: int | None) -> None:
    one = {"q1": response(("d2", 2.0), ("d1", 1.0)), "q2": response(("d1", 3.0)), "q3": response()}
    (tmp_path / "r.json").write_text(json.dumps(one, indent=indent))
    run = io.read_run(tmp_path / "r.json")
    assert rows(run) == RUN
    assert run.attrs["answered"] == ["q3"]
    (tmp_path / "n.json").write_text(json.dumps({"q1": {"d1": 0.5, "d2": 0.9}, "q2": {"d1": 1}}, indent=indent))
    assert rows(io.read_run(tmp_path / "n.json")) == RUN


def test_a_folder_of_responses(tmp_path: Path) -> None:
    (tmp_path / "q1.json").write_text(json.dumps(response(("d2", 2.0), ("d1", 1.0))))
    (tmp_path / "q2.json").write_text(json.dumps(response(("d1", 3.0))))
    assert rows(io.read_run(tmp_path)) == RUN
    (tmp_path / "q3.json").write_text("{}")
    with pytest.raises(InputError, match=r"q3\.json: found no `hits\.hits`"):
        io.read_run(tmp_path)


def test_nested_qrels(tmp_path: Path) -> None:
    (tmp_path / "qrels.json").write_text(json.dumps({"q": {"a": 3, "b": 0}}))
    assert io.read_qrels(tmp_path / "qrels.json")["relevance"].tolist() == [3, 0]


def test_parquet_reads_back_identically(tmp_path: Path) -> None:
    run = pd.DataFrame({"query_id": ["q", "ف"], "doc_id": ["007", "b"], "rank": [1, 1], "score": [0.1 + 0.2, 2.0]})
    run = run.astype({"query_id": "str", "doc_id": "str"})
    io.write_run(run, tmp_path / "r.parquet")
    pd.testing.assert_frame_equal(io.read_run(tmp_path / "r.parquet"), run)
    (tmp_path / "broken.parquet").write_bytes(b"not parquet")
    with pytest.raises(InputError, match="a broken Parquet file"):
        io.read_run(tmp_path / "broken.parquet")


def test_integer_ids_in_parquet_are_refused_with_the_remedy(tmp_path: Path) -> None:
    pd.DataFrame({"query_id": [1], "doc_id": ["a"], "relevance": [1]}).to_parquet(tmp_path / "q.parquet")
    with pytest.raises(InputError, match="astype"):
        io.read_qrels(tmp_path / "q.parquet")


def test_quepids_csv_names_queries_by_their_text(tmp_path: Path) -> None:
    path = tmp_path / "case.csv"
    path.write_text('query,docid,rating\n"red, shoes",d1,3\n"red, shoes",d2,\nboots,d1,1\n')
    assert rows(io.read_qrels(path).assign(rank=1))[0][:2] == ("red, shoes", "d1")
    queries = pd.DataFrame({"query_id": ["q1", "q2"], "text": ["red, shoes", "boots"]})
    qrels = io.read_qrels(path, queries=queries)
    assert qrels[["query_id", "doc_id", "relevance"]].values.tolist() == [["q1", "d1", 3], ["q2", "d1", 1]]
    with pytest.raises(InputError, match=r"case\.csv:4: found query 'boots'"):
        io.read_qrels(path, queries=queries.head(1))
    path.write_text("Team Name,Query Text,Doc ID,Doc Position,Title,Rating\nt,boots,d1,1,x,9\n")
    with pytest.raises(InputError, match=r"case\.csv:2: found grade 9"):
        io.read_qrels(path)


@pytest.mark.parametrize("name", ["queries.jsonl", "queries.csv", "queries.tsv", "queries.parquet"])
def test_queries_read_back(tmp_path: Path, name: str) -> None:
    queries = pd.DataFrame({"query_id": ["1", "ف"], "text": ["a, b", "کفش"], "kind": ["x", "y"]}).astype("str")
    io.write_queries(queries, tmp_path / name)
    pd.testing.assert_frame_equal(io.read_queries(tmp_path / name), queries)


def test_an_id_with_a_blank_cannot_go_into_a_trec_file(tmp_path: Path) -> None:
    run = pd.DataFrame({"query_id": ["q"], "doc_id": ["a b"], "rank": [1], "score": [1.0]})
    with pytest.raises(InputError, match="an id without blanks"):
        io.write_run(run, tmp_path / "r.run")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("q Q0 a 1 2.0 t\n\n# note\nq Q0 b 2 x t\n", 4, "score 'x'"),
        ("q Q0 a 1 2.0 t\n  \nq Q0 a 2 1.0 t\n", 3, "again (first on line 1)"),
        ("q Q0 a 1 2.0 t\nq  Q0 b 2 inf t\n", 2, "score inf"),
        ("q Q0 a 1 2.0 t\nq Q0 b 2 1_0 t\n", 2, "score '1_0'"),
        ("q Q0 a 1 2.0 t\nq Q0 b x 1.0 t\n", 2, "rank 'x'"),
    ],
)
def test_lines_are_named_on_the_fast_way_too(tmp_path: Path, text: str, line: int, said: str) -> None:
    (tmp_path / "r.run").write_text(text)
    with pytest.raises(InputError) as caught:
        io.read_run(tmp_path / "r.run")
    assert (caught.value.line, said in str(caught.value)) == (line, True), str(caught.value)


def test_a_query_id_may_start_with_the_sign_of_a_comment(tmp_path: Path) -> None:
    text = "#run: x\n# a b c d 1.0 f\n#\n#1 Q0 a 1 2.0 t\n2 Q0 a 1 1.0 t\n#2 Q0 b 2 worse t\n"
    (tmp_path / "r.run").write_text(text)
    assert io.read_run(tmp_path / "r.run")["query_id"].tolist() == ["#1", "2"]
    (tmp_path / "r.run").write_text("# note\n#1 Q0 a 1 2.0 t\n#1 Q0 a 2 1.0 t\n")
    with pytest.raises(InputError, match=r"r\.run:3: found query_id '#1'"):
        io.read_run(tmp_path / "r.run")


def test_blanks_other_than_ascii_do_not_split(tmp_path: Path) -> None:
    (tmp_path / "r.run").write_text("q Q0 a\u00a0b 1 2.0 t\nq Q0 c 2 1.0 t extra words\n")
    assert io.read_run(tmp_path / "r.run")["doc_id"].tolist() == ["a\u00a0b", "c"]


def test_peak_memory_of_a_large_run_is_within_four_times_its_text(tmp_path: Path) -> None:
    path = tmp_path / "large.run.gz"
    count, size = 1_500_000, 0
    with gzip.open(path, "wt", compresslevel=1) as file:
        for start in range(0, count, 1000):
            chunk = "".join(
                f"{start // 1000} Q0 LA{start + i:09d}-{i:04d} {i + 1} {1000 - i}.5 system\n" for i in range(1000)
            )
            size += len(chunk)
            file.write(chunk)
    start = "import sys, pyarrow.csv\nfrom searcheval import io\n"
    peak = peak_memory(start + "assert len(io.read_run(sys.argv[1])) == 1_500_000", str(path)) - peak_memory(start)
    assert peak * 1e6 <= 4 * size, f"{peak * 1e6 / size:.2f} times the text"
