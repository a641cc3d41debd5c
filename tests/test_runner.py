"""Whole runs, with real kernels: what is published, what a failure leaves, what bad input says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

import searcheval as se
from searcheval import runner
from searcheval.errors import InputError, NotebookError, short_path

COMMAND = [sys.executable, "-c", "from searcheval.cli import main; main()"]


def searcheval(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False)


def test_a_suite_of_files_is_published_and_what_else_is_there_stays(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "reports" / "shoes"
    (out / "notebooks").mkdir(parents=True)
    (out / "mine.txt").write_text("mine")
    (out / "04_old.html").write_text("of an earlier version")
    done = searcheval("run", suite, "-o", out, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "system | nDCG@10 | RR    | Abstained" in done.stdout
    assert "[1/1] 03_score" in done.stderr
    found = {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()}
    assert found == {
        "mine.txt",
        "03_score.html",
        "notebooks/03_score.ipynb",
        "report.json",
        "report.md",
        "run.json",
        "suite.yaml",
    }
    page = (out / "03_score.html").read_text(encoding="utf-8")
    assert str(tmp_path) not in page
    assert ".part" not in page
    assert "new is higher than old on nDCG@10" in page
    assert os.listdir(out.parent) == ["shoes"], "nothing is left beside"
    assert json.loads((out / "run.json").read_text())["seconds"].keys() == {"03_score"}


def test_a_bare_folder_and_flags_alone_give_the_same_scores(bare: Path, tmp_path: Path) -> None:
    one = searcheval("run", bare, "-m", "nDCG@10", "-m", "RR", "-o", tmp_path / "one", cwd=tmp_path)
    flags = ["--qrels", "judged.txt", "-s", "new=new.run", "-s", "old=old.run", "--set", "measures=[nDCG@10, RR]"]
    two = searcheval("run", *flags, "-o", tmp_path / "two", cwd=bare)
    assert (one.returncode, two.returncode) == (0, 0), one.stderr + two.stderr
    assert one.stdout == two.stdout


def test_a_failing_notebook_keeps_what_is_published(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    runner.run_suite(se.load_dataset(suite), out)
    before = {p.name: p.read_bytes() for p in out.iterdir() if p.is_file()}
    broken = tmp_path / "notebooks"
    shutil.copytree(runner.notebooks_folder(), broken)
    book = nbformat.read(broken / "03_score.ipynb", as_version=4)
    book.cells.append(nbformat.v4.new_code_cell("print('before')\nundefined_name"))
    nbformat.write(book, broken / "03_score.ipynb")
    monkeypatch.setattr(runner, "notebooks_folder", lambda: broken)
    with pytest.raises(NotebookError) as caught:
        runner.run_suite(se.load_dataset(suite), out)
    assert "NameError: name 'undefined_name' is not defined" in str(caught.value)
    kept = nbformat.read(out / "failed" / "03_score.ipynb", as_version=4)
    assert any("undefined_name" in str(cell.get("outputs", "")) for cell in kept.cells)
    assert {p.name: p.read_bytes() for p in out.iterdir() if p.is_file()} == before
    monkeypatch.undo()
    runner.run_suite(se.load_dataset(suite), out)
    assert not (out / "failed").exists(), "a good run clears what failed before"


def test_bad_input_inside_a_notebook_is_the_same_one_line(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (suite / "baseline.json").write_text("{}")
    expected = "baseline.json: found no `system` or no `lists`; expected a baseline written by"
    with pytest.raises(InputError, match=re.escape(expected)):
        runner.run_suite(se.load_dataset(suite), tmp_path / "out")
    assert not (tmp_path / "out").exists(), "said before any notebook ran"
    monkeypatch.setattr(runner, "check_files", lambda ds: None)  # as if the file had changed since
    with pytest.raises(InputError, match=re.escape(expected)) as caught:
        runner.run_suite(se.load_dataset(suite), tmp_path / "out")
    assert caught.value.file == short_path(suite / "baseline.json")
    kept = nbformat.read(tmp_path / "out" / "failed" / "03_score.ipynb", as_version=4)
    error = next(o for cell in kept.cells for o in cell.get("outputs", []) if o["output_type"] == "error")
    assert len(error["traceback"]) == 1, "one line, no traceback"


def test_the_suites_own_folder_is_no_place_for_output(suite: Path, tmp_path: Path) -> None:
    before = (suite / "suite.yaml").read_text()
    done = searcheval("run", ".", "-o", ".", cwd=suite)
    assert (done.returncode, "the suite's own folder" in done.stderr) == (2, True)
    assert (suite / "suite.yaml").read_text() == before


def test_a_linked_suite_finds_files_named_from_outside(suite: Path, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "link").symlink_to(suite)
    shutil.copy(suite / "runs" / "old.trec", tmp_path / "extra.run")
    done = searcheval("score", "deep/link", "-s", "extra=extra.run", cwd=tmp_path)
    assert done.returncode == 2, "the suite's gate names a system that is gone"
    done = searcheval("score", "deep/link", "-s", "new=extra.run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_code_systems_need_no_documents(suite: Path, tmp_path: Path) -> None:
    (suite / "systems.py").write_text("def make(ds):\n    return lambda query, k: [('d1', 1.0)]\n")
    text = (suite / "suite.yaml").read_text().replace("documents: documents.jsonl\n", "")
    (suite / "suite.yaml").write_text(text.replace("runs/new.trec", "systems.py:make"))
    report = runner.run_suite(se.load_dataset(suite), tmp_path / "out")
    assert report["systems"]["new"]["status"] == "ok"
    assert (tmp_path / "out" / "01_seed.html").exists()


def test_one_broken_system_leaves_the_others_scored(suite: Path, tmp_path: Path) -> None:
    (suite / "systems.py").write_text("import nothing_of_that_name\n")
    text = (suite / "suite.yaml").read_text()
    (suite / "suite.yaml").write_text(text.replace("runs/new.trec", "systems.py:make"))
    report = runner.run_suite(se.load_dataset(suite), tmp_path / "out")
    assert report["systems"]["new"]["status"] == "not_run"
    assert report["metrics"]["old"]["RR"] is not None


def test_a_path_in_a_notebooks_error_is_one_of_the_reader(suite: Path, tmp_path: Path) -> None:
    folder = runner.notebooks_folder().resolve()
    said = f"{os.path.relpath(suite / 'qrels.csv', folder)}:3: found x; expected y"
    assert str(runner._input_error(said, folder)) == f"{short_path(suite / 'qrels.csv')}:3: found x; expected y"


@pytest.mark.parametrize("kind", ["file", "closed"])
def test_output_that_cannot_be_written_is_said_at_once(suite: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    if kind == "file":
        out.write_text("x")
    else:
        out.mkdir(mode=0o500)
        if os.access(out, os.W_OK):
            pytest.skip("as root every folder may be written")
    done = searcheval("run", suite, "-o", out, cwd=tmp_path)
    assert done.returncode == 2
    assert "03_score" not in done.stderr


def test_what_a_killed_run_left_behind_is_cleared(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    left = tmp_path / f".out.{process.pid}.part"
    left.mkdir()
    with runner.staging(tmp_path / "out") as stage:
        (stage / "x.txt").write_text("x")
    assert not left.exists()
    assert (tmp_path / "out" / "x.txt").read_text() == "x"


BROKEN = [
    ("queries.jsonl", "queries.jsonl:4", '{"query_id": "q4"\n'),
    ("queries.jsonl", "queries.jsonl:4", '{"query_id": "q1", "text": "again"}\n'),
    ("documents.jsonl", "documents.jsonl:4", '{"doc_id": "d1"}\n'),
    ("qrels.csv", "qrels.csv:9", "q1,d9,7,\n"),
    ("qrels.csv", "qrels.csv:9", "q9,d1,1,\n"),
    ("qrels.csv", "qrels.csv:9", "q1,d9\n"),
    ("suite.yaml", "suite.yaml:14", "depht: 3\n"),
    ("runs/new.trec", "new.trec:4", "q1 Q0 d9 3\n"),
    ("runs/new.trec", "new.trec:4", "q1 Q0 d9 3 nan new\n"),
]


@pytest.mark.parametrize(("name", "place", "line"), BROKEN)
def test_broken_input_is_one_line_and_exit_code_2(
    suite: Path, tmp_path: Path, name: str, place: str, line: str
) -> None:
    with (suite / name).open("a") as file:
        file.write(line)
    done = searcheval("run", suite, "-o", tmp_path / "out", cwd=tmp_path)
    message = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 2
    assert place in message
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out" / "report.json").exists()


@pytest.mark.parametrize("name", ["queries.jsonl", "documents.jsonl", "qrels.csv"])
def test_an_empty_file_is_exit_code_2(suite: Path, tmp_path: Path, name: str) -> None:
    (suite / name).write_text("")
    done = searcheval("run", suite, "-o", tmp_path / "out", cwd=tmp_path)
    assert (done.returncode, name in done.stderr, "Traceback" in done.stderr) == (2, True, False)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "nowhere"],
        ["run", "--qrels", "nowhere.txt", "-s", "a=b"],
        ["run", "shoes", "-s", "nameless"],
        ["run", "shoes", "--set", "depth"],
        ["run", "shoes", "-m", "ndgc@10"],
        ["run", "shoes", "--baseline", "nobody"],
        ["gate", "nowhere"],
        ["index", "nowhere"],
        ["run", "--no-such-flag"],
    ],
)
def test_wrong_arguments_are_exit_code_2_without_a_traceback(suite: Path, arguments: list[str]) -> None:
    done = searcheval(*arguments, cwd=suite.parent)
    assert done.returncode == 2
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr


def test_the_gate_from_the_command_line(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    runner.run_suite(se.load_dataset(suite), out)
    assert searcheval("gate", out, cwd=tmp_path).returncode == 2, "no evidence yet"
    assert searcheval("gate", out, "--accept", cwd=tmp_path).returncode == 0
    runner.run_suite(se.load_dataset(suite), out)
    passed = searcheval("gate", out, "--json", cwd=tmp_path)
    assert passed.returncode == 0
    assert json.loads(passed.stdout)["passed"] is True
    shutil.copy(suite / "runs" / "old.trec", suite / "runs" / "new.trec")
    runner.run_suite(se.load_dataset(suite), out)
    failed = searcheval("gate", out, cwd=tmp_path)
    assert failed.returncode == 1
    assert "new FAILS the gate" in failed.stdout
    assert searcheval("gate", out, "--max-drop", "0.5", cwd=tmp_path).returncode == 0
    assert searcheval("gate", out, "--system", "old", cwd=tmp_path).returncode == 2


def test_the_index_links_every_suite(suite: Path, tmp_path: Path) -> None:
    runner.run_suite(se.load_dataset(suite), tmp_path / "reports" / "shoes")
    done = searcheval("index", "reports", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "shoes\nsystem | nDCG@10" in done.stdout
    page = (tmp_path / "reports" / "index.html").read_text(encoding="utf-8")
    assert 'href="shoes/03_score.html"' in page
    assert (tmp_path / "reports" / "methodology.html").exists()


@pytest.mark.parametrize("command", ["run", "gate", "index"])
def test_help_shows_examples(command: str, tmp_path: Path) -> None:
    done = searcheval(command, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert f"searcheval {command} " in done.stdout


@pytest.mark.parametrize("name", ["scores.csv", "scores.tsv", "scores.json", "scores.jsonl"])
def test_score_prints_means_and_writes_scores_by_query(suite: Path, tmp_path: Path, name: str) -> None:
    done = searcheval("score", suite, "-o", tmp_path / name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [[cell.strip() for cell in line.split("|")] for line in done.stdout.splitlines()]
    assert lines[0] == ["system", "nDCG@10", "RR", "Abstained", "queries", "unanswered", "judged@10"]
    assert lines[2] == ["new", "0.929", "0.667", "1.000", "3", "1", "1.000"]
    ds = se.load_dataset(suite)
    expected = se.evaluate(ds.qrels, se.load_runs(ds, tmp_path), ds.measures, queries=ds.queries)["new"]
    if name.endswith(".json"):
        found = json.loads((tmp_path / name).read_text())["new"]["q1"]["nDCG@10"]
    elif name.endswith(".jsonl"):
        rows = [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
        found = next(r["nDCG@10"] for r in rows if (r["system"], r["query_id"]) == ("new", "q1"))
    else:
        cells = [
            line.split("\t" if name.endswith("tsv") else ",") for line in (tmp_path / name).read_text().splitlines()
        ]
        found = float(next(c[2] for c in cells if c[:2] == ["new", "q1"]))
    assert found == expected.loc["q1", "nDCG@10"]


def test_score_refuses_another_ending(suite: Path, tmp_path: Path) -> None:
    done = searcheval("score", suite, "-o", tmp_path / "scores.xlsx", cwd=tmp_path)
    assert (done.returncode, "one of .csv, .tsv, .json, .jsonl" in done.stderr) == (2, True)
