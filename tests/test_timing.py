from __future__ import annotations

import pytest

from searcheval.timing import interleaved, peak_memory, seconds_of_import


def test_calls_take_turns_and_the_first_is_apart() -> None:
    order: list[str] = []
    table = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, repeats=2)
    assert order == ["a", "b"] * 3
    assert table.index.tolist() == ["a", "b"]
    assert (table >= 0).all(axis=None)


def test_peak_memory_sees_what_a_process_holds() -> None:
    small = peak_memory("x = 0")
    large = peak_memory("import sys; x = bytearray(int(sys.argv[1])); x[::4096] = b'1' * len(x[::4096])", "200000000")
    assert 150 < large - small < 300


def test_a_process_that_fails_says_why() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        peak_memory("1 / 0")


def test_an_import_takes_time() -> None:
    assert seconds_of_import("pandas", repeats=1) > seconds_of_import("sys", repeats=1)
