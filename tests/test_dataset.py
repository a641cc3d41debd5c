from __future__ import annotations

import json
from pathlib import Path

import pytest

import searcheval as se
from searcheval.errors import InputError

SYSTEM = """
def make(ds):
    def search(query, k):
        return [(d, 1.0) for d in ds.documents["doc_id"]][:k]
    return search
"""


def test_a_suite_loads_with_its_facts(suite: Path) -> None:
    ds = se.load_dataset(suite, depth=5)
    assert (ds.name, len(ds.queries), len(ds.documents), ds.baseline, ds.primary) == ("shoes", 3, 3, "old", "nDCG@10")
    assert "overridden: depth: 5" in repr(ds)
    assert "<table" in ds._repr_html_()


def test_a_bare_folder_is_a_suite(bare: Path) -> None:
    ds = se.load_dataset(bare)
    assert list(ds.settings.systems) == ["new", "old"]
    assert ds.queries["query_id"].tolist() == ["q1", "q2", "q3"]
    assert ds.documents is None


def test_a_bare_folder_without_qrels_says_so(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("some words that look like six columns")
    with pytest.raises(InputError, match="no qrels"):
        se.load_dataset(tmp_path)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_a_bare_folder_may_hold_tables(tmp_path: Path, ending: str) -> None:
    run = se.as_run({"q1": {"d1": 2.0, "d2": 1.0}})
    se.write_run(run, tmp_path / f"new.{ending}")
    se.write_run(run, tmp_path / "old.run")
    se.write_qrels(se.as_qrels({"q1": {"d1": 3}}), tmp_path / f"labels.{ending}")
    ds = se.load_dataset(tmp_path)
    assert sorted(ds.settings.systems) == ["new", "old"]
    assert ds.settings.qrels == f"labels.{ending}"


def test_two_runs_of_one_name_are_refused(bare: Path) -> None:
    (bare / "old.txt").write_text((bare / "old.run").read_text())
    with pytest.raises(InputError, match="two runs named 'old'"):
        se.load_dataset(bare)


def test_a_suite_without_systems_says_so(suite: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no system"):
        se.load_runs(se.load_dataset(suite, systems={}, gate={"system": None}), tmp_path)


def test_where_chooses_queries_and_their_judgments(suite: Path) -> None:
    ds = se.load_dataset(suite, where={"lang": "fa"})
    assert ds.queries["query_id"].tolist() == ["q2"]
    assert set(ds.qrels["query_id"]) == {"q2"}


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"where": {"language": "fa"}}, "did you mean 'lang'"),
        ({"where": {"lang": "de"}}, "no query with lang = de"),
        ({"segments": ["kindd"]}, "did you mean 'kind'"),
        ({"baseline": "odl"}, "did you mean 'old'"),
        ({"gate": {"system": "newer"}}, "did you mean 'new'"),
        ({"depht": 3}, "did you mean 'depth'"),
        ({"queries": "query.jsonl"}, "did you mean 'queries.jsonl'"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(suite: Path, overrides: dict, said: str) -> None:
    with pytest.raises(InputError) as caught:
        se.load_dataset(suite, **overrides)
    assert said in str(caught.value)


def test_a_judgment_for_an_unknown_query_names_its_line(suite: Path) -> None:
    with (suite / "qrels.csv").open("a") as file:
        file.write("q9,d1,1,\n")
    with pytest.raises(InputError, match=r"qrels\.csv:9: found unknown query_id 'q9'"):
        se.load_dataset(suite)


def test_a_judgment_outside_where_is_no_error(suite: Path) -> None:
    assert len(se.load_dataset(suite, where={"kind": ["plain", "colour"]}).qrels) == 5


def code_suite(suite: Path, code: str = SYSTEM) -> Path:
    (suite / "systems.py").write_text(code)
    text = (suite / "suite.yaml").read_text().replace("  new: runs/new.trec", "  new: systems.py:make")
    (suite / "suite.yaml").write_text(text)
    return suite


def test_runs_of_code_systems_are_handed_on(suite: Path, tmp_path: Path) -> None:
    ds = se.load_dataset(code_suite(suite))
    with pytest.raises(InputError, match="01_seed"):
        se.load_runs(ds, tmp_path / "out")
    records = se.run_systems(ds, tmp_path / "out")
    assert records["new"].status == "ok"
    runs = se.load_runs(ds, tmp_path / "out")
    assert list(runs) == ["old", "new"]
    assert runs["new"].query("query_id == 'q1'")["doc_id"].tolist() == ["d1", "d2", "d3"], "the order is the system's"


@pytest.mark.parametrize("change", ["code", "queries", "documents", "k", "where"])
def test_a_stale_run_is_refused(suite: Path, tmp_path: Path, change: str) -> None:
    out = tmp_path / "out"
    se.run_systems(se.load_dataset(code_suite(suite)), out)
    overrides: dict = {}
    if change == "k":
        overrides["k"] = 1
    elif change == "where":
        overrides["where"] = {"lang": "en"}
    else:
        name = {"code": "systems.py", "queries": "queries.jsonl", "documents": "documents.jsonl"}[change]
        with (suite / name).open("a") as file:
            file.write("\n")
    with pytest.raises(InputError, match="made from other inputs"):
        se.load_runs(se.load_dataset(suite, **overrides), out)


def test_a_system_that_raises_on_one_query_fails_there_only(suite: Path, tmp_path: Path) -> None:
    code = SYSTEM.replace(
        "        return", "        if query['query_id'] == 'q3': raise OSError('/home/me/x gone')\n        return"
    )
    ds = se.load_dataset(code_suite(suite, code))
    record = se.run_systems(ds, tmp_path / "out")["new"]
    assert (record.status, record.failed) == ("ok", ["q3"])
    assert "/home/me" not in str(record.reason)
    scores = se.evaluate(ds.qrels, se.load_runs(ds, tmp_path / "out"), ds.measures, queries=ds.queries)
    assert scores["new"].loc["q3"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "code",
    [
        "def make(ds):\n    raise RuntimeError('no database')",
        "def make(ds):\n    return lambda query, k: 1 / 0",
        "def make(ds):\n    return lambda query, k: []",
        "def make(ds):\n    return lambda query, k: [('d1', float('nan'))]",
        "def make(ds):\n    return lambda query, k: [('d1', 1.0), ('d1', 0.5)]",
        "this is no python",
        "import sys; sys.exit(3)",
        "import sys\ndef make(ds):\n    return lambda query, k: sys.exit(0)",
    ],
)
def test_a_system_that_raises_throughout_is_not_run(suite: Path, tmp_path: Path, code: str) -> None:
    ds = se.load_dataset(code_suite(suite, code))
    assert se.run_systems(ds, tmp_path / "out")["new"].status == "not_run"
    runs = se.load_runs(ds, tmp_path / "out")
    assert runs["new"].attrs["status"] == "not_run"
    assert se.means(se.evaluate(ds.qrels, runs, "RR", queries=ds.queries)).loc["new"].isna().all()


@pytest.mark.parametrize("code", ["this is no python", "def make(ds):\n    return lambda query, k: 1 / 0"])
def test_a_broken_system_can_be_traced(suite: Path, code: str) -> None:
    ds = se.load_dataset(code_suite(suite, code))
    steps = se.trace(ds, "new", ds.queries.iloc[0])
    assert len(steps) == 1
    assert steps[0][0].startswith("it raises ")


def test_a_partial_answer_is_kept_and_marked(suite: Path, tmp_path: Path) -> None:
    code = (
        "from searcheval import PartialResult\n"
        "def make(ds):\n"
        "    def search(query, k):\n"
        "        raise PartialResult([('d1', 1.0)], 'half is missing')\n"
        "    return search\n"
    )
    ds = se.load_dataset(code_suite(suite, code))
    record = se.run_systems(ds, tmp_path / "out")["new"]
    assert record.status == "partial"
    assert "half is missing" in str(record.reason)
    assert len(se.load_runs(ds, tmp_path / "out")["new"]) == 3


def test_an_unknown_factory_is_an_input_error(suite: Path, tmp_path: Path) -> None:
    ds = se.load_dataset(code_suite(suite, SYSTEM.replace("make", "mak")))
    with pytest.raises(InputError, match="did you mean 'mak'"):
        se.run_systems(ds, tmp_path / "out")


def test_an_edited_system_is_loaded_again(suite: Path, tmp_path: Path) -> None:
    ds = se.load_dataset(code_suite(suite))
    se.run_systems(ds, tmp_path)
    (suite / "systems.py").write_text(SYSTEM.replace("[:k]", "[:1]"))
    se.run_systems(ds, tmp_path)
    lines = (tmp_path / "runs" / "new.jsonl").read_text().splitlines()
    assert [len(json.loads(line)["results"]) for line in lines] == [1, 1, 1]


def test_an_empty_run_file_is_not_run(suite: Path, tmp_path: Path) -> None:
    (suite / "runs" / "new.trec").write_text("")
    run = se.load_runs(se.load_dataset(suite), tmp_path)["new"]
    assert (run.attrs["status"], run.attrs["reason"]) == ("not_run", "no results at all")


@pytest.mark.parametrize("text", ["{}", "[]", '{"system": "new"}', "{"])
def test_a_broken_baseline_is_an_input_error(suite: Path, tmp_path: Path, text: str) -> None:
    (suite / "baseline.json").write_text(text)
    with pytest.raises(InputError, match=r"baseline\.json"):
        se.load_runs(se.load_dataset(suite), tmp_path)
