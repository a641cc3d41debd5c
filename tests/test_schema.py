"""Frames and dicts that a caller brings."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searcheval.errors import InputError
from searcheval.schema import as_documents, as_qrels, as_queries, as_run


def test_synonyms_are_understood() -> None:
    run = as_run(pd.DataFrame({"qid": ["q"], "docno": ["d"], "score": [1.0]}))
    assert run.columns.tolist() == ["query_id", "doc_id", "rank", "score"]
    qrels = as_qrels(pd.DataFrame({"topic": ["q"], "product_id": ["d"], "grade": [2], "note": ["x"]}))
    assert qrels.columns.tolist() == ["query_id", "doc_id", "relevance", "note"]


def test_rank_wins_over_score() -> None:
    frame = pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "rank": [2, 1], "score": [9.0, 1.0]})
    assert as_run(frame)["doc_id"].tolist() == ["b", "a"]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame({"query_id": [1], "doc_id": ["a"], "score": [1.0]}), "astype({'query_id': str})"),
        (pd.DataFrame({"query_id": ["q"], "doc_id": [None], "score": [1.0]}), "no doc_id"),
        (pd.DataFrame({"query_id": ["q"], "doc_id": ["a"], "score": [float("nan")]}), "score nan"),
        (pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "a"], "score": [1.0, 2.0]}), "again (first on row 0)"),
        (pd.DataFrame({"query_id": ["q"], "score": [1.0]}), "no column 'doc_id'"),
    ],
)
def test_a_bad_run_is_refused_with_the_remedy(frame: pd.DataFrame, said: str) -> None:
    with pytest.raises(InputError) as caught:
        as_run(frame)
    assert said in str(caught.value)


def test_a_dict_that_is_not_nested_is_refused() -> None:
    with pytest.raises(InputError, match="found int for query 'q'"):
        as_qrels({"q": 1})  # type: ignore[dict-item]


@pytest.mark.parametrize("make", [as_queries, as_documents])
def test_an_id_twice_is_refused(make) -> None:
    with pytest.raises(InputError, match="again"):
        make(pd.DataFrame({"query_id": ["a", "a"], "doc_id": ["a", "a"], "text": ["x", "y"]}))


IDS = st.text(min_size=1, max_size=4)


@given(
    st.dictionaries(
        IDS, st.dictionaries(IDS, st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1), min_size=1
    )
)
def test_lists_are_in_trec_evals_order(lists: dict[str, dict[str, float]]) -> None:
    run = as_run(lists)
    for query_id, rows in run.groupby("query_id"):
        expected = sorted(
            lists[str(query_id)], key=lambda d: (lists[str(query_id)][d], d.encode("utf-32-be")), reverse=True
        )
        assert rows["doc_id"].tolist() == expected
        assert rows["rank"].tolist() == list(range(1, len(rows) + 1))
