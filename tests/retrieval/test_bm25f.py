"""The arithmetic of BM25F."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searcheval.retrieval import bm25f_score


@pytest.mark.parametrize(("tf", "length", "df", "score"), [([1], 1, [2], 6.2596), ([1, 1], 2, [80, 80], 0.6655)])
def test_known_answers(tf, length, df, score):
    assert bm25f_score([[tf]], [[length]], [1.5], df, 100, [3]) == pytest.approx([score], abs=1e-4)


def test_two_fields_by_hand():
    # w = 3 * 1/(0.25 + 0.75 * 2/4) + 1 * 2/(0.25 + 0.75 * 10/5) = 4.8 + 8/7
    w = 3 / 0.625 + 2 / 1.75
    expected = math.log(1 + 7.5 / 3.5) * 2.2 * w / (1.2 + w)
    assert bm25f_score([[[1], [2]]], [[2, 10]], [4, 5], [3], 10, [3, 1]) == pytest.approx([expected], abs=1e-12)


def test_a_field_that_is_empty_everywhere_adds_nothing():
    with_it = bm25f_score([[[1], [0]]], [[2, 0]], [2, 0], [1], 5, [1, 9])
    assert with_it == pytest.approx(bm25f_score([[[1]]], [[2]], [2], [1], 5, [1]))


def test_no_documents_and_no_terms():
    assert bm25f_score(np.zeros((0, 1, 2)), np.zeros((0, 1)), [2], [1, 1], 5, [1]).shape == (0,)
    assert bm25f_score(np.zeros((3, 1, 0)), np.zeros((3, 1)), [2], [], 5, [1]).tolist() == [0, 0, 0]


@given(
    st.lists(st.integers(0, 9), min_size=6, max_size=6),
    st.lists(st.integers(1, 90), min_size=2, max_size=2),
    st.integers(2, 40),
)
def test_equal_documents_tie_exactly_and_more_of_a_term_never_hurts(tf, length, copies):
    document = np.array(tf).reshape(2, 3)
    more = document + np.array([[1, 0, 0], [0, 0, 0]])
    batch = [document] * copies + [more]
    scores = bm25f_score(batch, [length] * len(batch), [7, 20], [1, 5, 9], 50, [3, 1])
    alone = bm25f_score([document], [length], [7, 20], [1, 5, 9], 50, [3, 1])
    assert set(scores[:-1]) == set(alone)
    assert scores[-1] >= scores[0]
