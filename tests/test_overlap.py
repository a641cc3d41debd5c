from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import searcheval as se
from searcheval.metrics.similarity import jaccard, rank_biased_overlap

LISTS = st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=10)


def brute(one: list[str], other: list[str], p: float, depth: int = 2000) -> float:
    """The infinite sum of rank-biased overlap, with agreement beyond the ends as equation 32 assumes it."""
    short, long = sorted((one, other), key=len)
    s, n = len(short), len(long)
    at_short = len(set(short) & set(long[:s]))
    at_long = len(set(short) & set(long))
    total = 0.0
    for d in range(1, depth):
        if d <= s:
            agreement = len(set(short[:d]) & set(long[:d])) / d
        elif d <= n:
            agreement = (len(set(short) & set(long[:d])) + at_short * (d - s) / s) / d
        else:
            agreement = (at_long - at_short) / n + at_short / s
        total += agreement * p ** (d - 1)
    return (1 - p) * total


@pytest.mark.parametrize(
    ("one", "other", "p", "expected"),
    [
        ("abc", "abc", 0.9, 1.0),
        ("abc", "xyz", 0.9, 0.0),
        # agreements 0, 1/2 and then 1/2 for ever: 0.1 * (0 + 0.9 / 2) + 0.81 / 2
        ("ab", "bc", 0.9, 0.45),
        ("a", "ab", 0.5, 1.0),
        ("", "", 0.9, 1.0),
        ("", "a", 0.9, 0.0),
    ],
)
def test_known_answers(one: str, other: str, p: float, expected: float) -> None:
    assert rank_biased_overlap(list(one), list(other), p) == pytest.approx(expected, abs=1e-12)


@given(LISTS.filter(bool), LISTS.filter(bool), st.sampled_from([0.5, 0.8, 0.9]))
def test_it_is_the_sum_it_stands_for(one: list[str], other: list[str], p: float) -> None:
    assert rank_biased_overlap(one, other, p) == pytest.approx(brute(one, other, p), abs=1e-9)


@given(LISTS, LISTS)
def test_both_are_symmetric_and_within_bounds(one: list[str], other: list[str]) -> None:
    assert 0 <= rank_biased_overlap(one, other, 0.9) <= 1
    assert rank_biased_overlap(one, other, 0.9) == rank_biased_overlap(other, one, 0.9)
    assert jaccard(one, other) == jaccard(other, one)
    assert math.isclose(rank_biased_overlap(one, one, 0.9), 1)


def test_a_table_a_pair_and_query() -> None:
    runs = {
        "a": se.as_run({"q": {"x": 2.0, "y": 1.0}, "r": {"x": 1.0}}),
        "b": se.as_run({"q": {"y": 2.0, "z": 1.0}}),
        "c": se.as_run({"q": {"x": 2.0, "y": 1.0}}),
    }
    table = se.overlap(runs, queries=["q", "r", "s"], k=2).set_index(["a", "b", "query_id"])
    assert len(table) == 9
    assert table.loc[("a", "b", "q"), "jaccard"] == pytest.approx(1 / 3)
    assert table.loc[("a", "c", "q"), "rbo"] == 1
    assert table.loc[("a", "b", "r")].tolist() == [0, 0], "one answers, the other does not"
    assert table.loc[("a", "b", "s")].tolist() == [1, 1], "neither answers"
    with pytest.raises(ValueError, match="p=1"):
        se.overlap(runs, p=1)
