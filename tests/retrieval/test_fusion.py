"""Reciprocal rank fusion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searcheval.retrieval import reciprocal_rank_fusion

ranked = st.lists(st.sampled_from("abcdefghij"), unique=True)
arms = st.lists(ranked, max_size=4)


def test_known_answers():
    fused = dict(reciprocal_rank_fusion([["x", "y", "z"], ["y", "w", "x"]]))
    assert {d: round(s, 6) for d, s in fused.items()} == {"x": 0.032266, "y": 0.032522, "z": 0.015873, "w": 0.016129}


def test_ties_go_to_the_key_and_then_to_the_id():
    lists = [["a", "b", "c"], ["c", "b", "a"], ["b"]]
    assert [d for d, _ in reciprocal_rank_fusion(lists)] == ["b", "a", "c"]
    settled = {"a": 1, "b": 0, "c": 7}
    assert [d for d, _ in reciprocal_rank_fusion(lists, tie_break=lambda d: -settled[d])] == ["b", "c", "a"]


def test_a_tie_is_exact_where_floats_are_not():
    # 1/61 + 1/62 + 1/63 added in two orders differs in floating point; the sums are equal all the same.
    lists = [["a", "x", "b"], ["b", "a", "y"], ["z", "b", "a"]]
    (first, one), (second, other) = reciprocal_rank_fusion(lists)[:2]
    assert (first, second) == ("a", "b")
    assert one == other


def test_depth_cuts_each_list():
    assert [d for d, _ in reciprocal_rank_fusion([["a", "b", "c"], ["b"]], depth=1)] == ["a", "b"]


def test_nothing_to_fuse():
    assert reciprocal_rank_fusion([]) == reciprocal_rank_fusion([[], []]) == []


def test_a_document_twice_in_one_list_is_refused():
    with pytest.raises(ValueError, match="'a' is twice"):
        reciprocal_rank_fusion([["a", "b", "a"]])


@given(arms.flatmap(lambda lists: st.tuples(st.just(lists), st.permutations(lists))))
def test_the_order_of_the_arms_never_matters(pair):
    lists, shuffled = pair
    assert reciprocal_rank_fusion(lists) == reciprocal_rank_fusion(shuffled)


@given(arms, st.integers(1, 100))
def test_every_document_comes_once_best_first(lists, k):
    fused = reciprocal_rank_fusion(lists, k)
    assert sorted(d for d, _ in fused) == sorted({d for one in lists for d in one})
    assert [s for _, s in fused] == sorted((s for _, s in fused), reverse=True)
    for doc_id, score in fused:
        assert score == pytest.approx(sum(1 / (k + one.index(doc_id) + 1) for one in lists if doc_id in one))


@given(arms, st.sampled_from("abcdefghij"))
def test_one_more_arm_with_a_document_on_top_never_lowers_it(lists, doc_id):
    def place(of):
        ids = [d for d, _ in reciprocal_rank_fusion(of)]
        return ids.index(doc_id) if doc_id in ids else len(ids)

    assert place([*lists, [doc_id]]) <= place(lists)
