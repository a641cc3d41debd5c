"""What an installed wheel does in a folder that holds nothing of ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_wheel_carries_the_notebooks_and_runs_them_in_an_empty_folder(bare: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("searcheval", "notebooks"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, source / name)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=source, check=True, capture_output=True
    )
    installed = tmp_path / "installed"
    with zipfile.ZipFile(next((source / "dist").glob("*.whl"))) as wheel:
        wheel.extractall(installed)
    assert {p.name for p in (installed / "searcheval" / "notebooks").glob("*.ipynb")} >= {
        "03_score.ipynb",
        "benchmarks.ipynb",
    }
    shutil.rmtree(source)
    empty = tmp_path / "empty"
    empty.mkdir()
    code = "import searcheval; print(searcheval.__file__); from searcheval.cli import main; main()"
    command = [sys.executable, "-c", code, "run", "--qrels", str(bare / "judged.txt"), "-s", f"old={bare / 'old.run'}"]
    done = subprocess.run(
        [*command, "-s", f"new={bare / 'new.run'}"],
        cwd=empty,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert str(installed) in done.stdout, "the wheel's package ran, not this checkout's"
    page = (empty / "reports" / "bare" / "03_score.html").read_text(encoding="utf-8")
    assert "new is lower than old" in page or "new is higher than old" in page
    assert str(tmp_path) not in page
