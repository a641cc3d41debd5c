from __future__ import annotations

from pathlib import Path

import pytest

from searcheval.errors import InputError
from searcheval.settings import Settings, parse_set, read_settings, resolve


def load(path: Path) -> Settings:
    data, lines = read_settings(path)
    return resolve(data, {}, source=path, lines=lines)


def test_layers_merge_and_the_last_one_wins() -> None:
    file = {"depth": 5, "gate": {"system": "a", "max_drop": 0.05}, "systems": {"a": "a.run", "b": "b.run"}}
    settings = resolve(file, {"depth": 20, "gate": {"max_drop": 0.01}, "systems": {"c": "c.run"}})
    assert settings.depth == 20
    assert (settings.gate.system, settings.gate.max_drop) == ("a", 0.01)
    assert list(settings.systems) == ["c"], "systems are replaced as a whole"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("name: x\ndepht: 3\n", 2, "unknown setting 'depht'; expected one of"),
        ("gate:\n  system: a\n  max_dropp: 1\n", 3, "did you mean 'max_drop'"),
        ("name: x\ndepth: deep\n", 2, "depth: 'deep'"),
        ("depth: true\n", 1, "valid integer"),
        ("measures: []\n", 1, "at least 1 item"),
        ("name: ../up\n", 1, "pattern"),
        ("depth: 0\n", 1, "greater than or equal to 1"),
        ("measures:\n  - nDCG@10\n  - ndgc@5\n", 1, "unknown measure 'ndgc'"),
        ("conventions: {no_relevant: maybe}\n", 1, "'perfect', 'zero' or 'skip'"),
        ("systems: {a/b: x.run}\n", 1, "system name 'a/b'"),
        ("name: x\nname: y\n", 2, "setting 'name' twice"),
        ("name: [x\n", 2, "broken YAML"),
        ("- a\n", 1, "no mapping"),
    ],
)
def test_a_wrong_setting_names_file_and_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load(path)
    assert (caught.value.line, "suite.yaml" in str(caught.value)) == (line, True)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("flag", ["depth", "=3", "depth=[3", "a=1"])
def test_a_wrong_flag_is_an_input_error(flag: str) -> None:
    with pytest.raises(InputError):
        resolve({}, parse_set([flag]))


def test_set_reaches_inside() -> None:
    assert parse_set(["where.split=test", "where.lang=fa", "k=5"]) == {"where": {"split": "test", "lang": "fa"}, "k": 5}
    with pytest.raises(InputError, match="set to a value before"):
        parse_set(["gate=1", "gate.max_drop=2"])


def test_moved_settings_point_to_the_same_files(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {"queries": "q.jsonl", "systems": {"a": "s.py:make", "b": "runs/b.run"}, "gate": {"baseline": "baseline.json"}}
    )
    old, new = tmp_path / "data" / "x", tmp_path / "reports" / "x"
    moved = settings.moved(old, new)
    for before, after in zip(settings.paths().values(), moved.paths().values(), strict=True):
        assert (new / after).resolve() == (old / before).resolve()
    assert moved.systems["a"].endswith("s.py:make")


def test_measures_of_primary_and_gate_are_scored_too() -> None:
    settings = resolve({"measures": ["rr"], "primary": "ndcg@5", "gate": {"measures": ["R@5", "RR"]}}, {})
    assert [str(m) for m in settings.parsed_measures()] == ["RR", "nDCG@5", "R@5"]


def test_the_scale_reaches_err() -> None:
    assert str(resolve({"measures": ["ERR@10"], "max_grade": 4}, {}).parsed_measures()[0]) == "ERR(max=4)@10"
