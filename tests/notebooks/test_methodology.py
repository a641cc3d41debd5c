"""The methodology page runs from nothing, its numbers are asserted beside it, what it says of `services` is so."""

import csv
import json
import re
from collections import Counter
from pathlib import Path

import nbformat
import papermill
import pytest
from bs4 import BeautifulSoup

from searcheval.publish import render

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "00_methodology.ipynb"
SUITE = ROOT / "data" / "services"


@pytest.fixture(scope="module")
def book():
    return nbformat.read(NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page, made in an empty folder: the notebook leans on no suite, as with an installed wheel."""
    folder = tmp_path_factory.mktemp("methodology")
    papermill.execute_notebook(
        NOTEBOOK, folder / "done.ipynb", cwd=folder, kernel_name="python3", progress_bar=False, log_output=False
    )
    render(folder / "done.ipynb", folder / "methodology.html", title="How it is counted")
    return BeautifulSoup((folder / "methodology.html").read_text(encoding="utf-8"), "html.parser")


def test_it_is_committed_clean(book):
    nbformat.validate(book)
    assert book.metadata.kernelspec.name == "python3"
    for cell in book.cells:
        assert "parameters" not in cell.metadata.get("tags", ())
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


def test_every_worked_number_is_asserted_in_the_cell_beside_it(book):
    """A number of three decimals or more in a text is asserted by the code right after or right before that text."""
    asserted: list[str] = [""]
    texts: list[str] = []
    for cell in book.cells:
        if cell.cell_type == "markdown":
            texts.append(cell.source.split("\n## Sources")[0])
            asserted.append("")
        else:
            asserted[-1] += "\n".join(
                line for line in cell.source.splitlines() if re.match(r"\s*assert |\s*[\[(]", line)
            )
    for i, text in enumerate(texts):
        beside = asserted[i] + asserted[i + 1]
        for number in re.findall(r"(?<![\d.])\d+\.\d{3,}(?!\d)", text):
            assert float(number) in {float(n) for n in re.findall(r"\d+\.\d+", beside)}, (number, text[:60])


def test_it_runs_from_nothing_and_every_formula_is_drawn(page):
    assert page.h1.get_text() == "What a search score says, and what it does not"
    assert len(page.select("math[display=block]")) >= 10
    assert len(page.select("figure svg")) >= 7
    assert not page.select(".output_error, .output_stderr")
    assert "$" not in page.select_one("main").get_text()


def test_what_it_says_of_the_services_suite():
    queries = [json.loads(line) for line in (SUITE / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    documents = (SUITE / "documents.jsonl").read_text(encoding="utf-8").splitlines()
    assert (len(queries), len(documents)) == (15, 18)
    with (SUITE / "qrels.csv").open(encoding="utf-8", newline="") as file:
        answerable = {row["query_id"] for row in csv.DictReader(file) if int(row["relevance"]) > 0}
    assert len(answerable) == 12
    kinds = Counter(query["category"] for query in queries)
    assert set(kinds.values()) == {3}
    source = NOTEBOOK.read_text(encoding="utf-8")
    table = re.findall(r"\| ([a-z-]+): \\\"([^\\]+)\\\" \|", source)
    assert {kind for kind, _ in table} == set(kinds)
    assert set(table) <= {(query["category"], query["text"]) for query in queries}


def test_its_field_weights_are_those_of_the_services_suite(book):
    weights = re.search(r"^WEIGHTS = (\{.*\})$", (SUITE / "systems.py").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert json.loads(weights) == {"title": 3, "tags": 3, "text": 1, "url": 0.5}
    assert any('"3, 3, 1, 0.5"' in cell.source for cell in book.cells)
