"""Measures: answers worked out by hand, every row of the conventions, and agreement with trec_eval on random data."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from searcheval.errors import InputError
from searcheval.metrics import FORMULAS, Conventions, answerable, evaluate, parse_measure
from searcheval.schema import as_run

QRELS = {"q": {"a": 3, "b": 1, "c": 0}}


def ranked(*docs: str, query: str = "q") -> pd.DataFrame:
    return pd.DataFrame({"query_id": [query] * len(docs), "doc_id": list(docs), "rank": range(1, len(docs) + 1)})


def one(measure: str, *docs: str, qrels: dict[str, dict[str, int]] = QRELS, **kwargs: object) -> float:
    # A second query, answered, so that an empty list for the first is an answer and not a system that did not run.
    run = pd.concat([ranked(*docs), ranked("a", query="filler")])
    frame = evaluate({**qrels, "filler": {"a": 1}}, run, measure, **kwargs)  # type: ignore[call-overload]
    return float(frame.loc["q"].iloc[0])


@pytest.mark.parametrize(
    ("measure", "docs", "expected"),
    [
        ("nDCG@10", "abc", 1.0),
        ("nDCG@10", "bac", 5.4165 / 7.6309),
        ("nDCG@10", "bac", 0.7098),
        ("nDCG@10", "bc", 0.1310),
        ("nDCG(gain=linear)@10", "bac", (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))),
        ("nDCG@1", "bac", 1 / 7),
        ("RR", "zya", 1 / 3),
        ("RR", "zy", 0.0),
        ("RR(rel=2)", "bza", 1 / 3),
        ("RR@2", "zya", 0.0),
        ("R@20", "azy", 0.5),
        ("R@1", "zya", 0.0),
        ("R(rel=2)@20", "azy", 1.0),
        ("P@10", "ab", 0.2),
        ("P(rel=2)@2", "ab", 0.5),
        ("AP", "zab", (1 / 2 + 2 / 3) / 2),
        ("AP@2", "zab", (1 / 2) / 2),
        ("RPrec", "azb", 0.5),
        ("Success@1", "za", 0.0),
        ("Success@2", "za", 1.0),
        ("F1@2", "za", 2 * 0.5 * 0.5 / (0.5 + 0.5)),
        ("RBP(p=0.5)", "zab", 0.5 * (0.5 + 0.25)),
        ("ERR@10", "ba", 1 / 8 + (7 / 8) * (7 / 8) / 2),
        ("ERR(max=4)@10", "a", 7 / 16),
        ("Judged@10", "zab", 2 / 3),
        ("Judged@2", "zab", 0.5),
        ("NumRet", "zab", 3.0),
    ],
)
def test_known_answers(measure: str, docs: str, expected: float) -> None:
    assert one(measure, *docs) == pytest.approx(expected, abs=1e-4)


def test_bpref_counts_judged_irrelevant_documents_above() -> None:
    qrels = {"q": {"a": 1, "b": 1, "x": 0, "y": 0, "w": 0}}
    # R = 2, N = 3: a has one irrelevant above (1 - 1/2), b has two (1 - 2/2); u is unjudged and passed over.
    assert one("Bpref", "x", "u", "a", "y", "b", qrels=qrels) == pytest.approx((0.5 + 0.0) / 2)


def test_ideal_dcg_uses_all_judged_documents() -> None:
    assert one("nDCG@10", "b", "c") < 1


class TestConventions:
    """One test for each row of the table of conventions."""

    nothing = {"q": {"a": 0, "b": 0}}  # noqa: RUF012

    def test_query_without_any_judgment_is_nan_and_out_of_the_mean(self) -> None:
        run = pd.concat([ranked("a"), ranked("a", query="r")])
        frame = evaluate(QRELS, run, "nDCG@10", queries=["q", "r"])
        assert math.isnan(frame.loc["r", "nDCG@10"])
        assert frame["nDCG@10"].mean() == pytest.approx(frame.loc["q", "nDCG@10"])

    @pytest.mark.parametrize("measure", ["nDCG@10", "R@20", "AP", "RPrec", "Bpref"])
    def test_nothing_relevant_is_perfect_for_normalised_measures(self, measure: str) -> None:
        assert one(measure, "a", qrels=self.nothing) == 1
        assert one(measure, qrels=self.nothing) == 1
        assert one(measure, "a", qrels=self.nothing, conventions=Conventions(no_relevant="zero")) == 0
        assert math.isnan(one(measure, "a", qrels=self.nothing, conventions=Conventions(no_relevant="skip")))

    @pytest.mark.parametrize("measure", ["RR", "P@10", "Success@5", "F1@10", "RBP", "ERR@10"])
    def test_nothing_relevant_is_zero_for_the_others(self, measure: str) -> None:
        assert one(measure, "a", qrels=self.nothing) == 0
        assert math.isnan(one(measure, "a", qrels=self.nothing, conventions=Conventions(no_relevant="skip")))

    def test_judged_and_numret_count_as_always(self) -> None:
        skip = Conventions(no_relevant="skip")
        assert one("Judged@10", "a", "z", qrels=self.nothing, conventions=skip) == 0.5
        assert one("NumRet", "a", "z", qrels=self.nothing, conventions=skip) == 2

    def test_relevant_means_what_the_measure_says(self) -> None:
        assert one("R(rel=2)@5", "b", qrels={"q": {"b": 1}}) == 1
        assert one("R@5", "z", qrels={"q": {"b": 1}}) == 0

    def test_abstained_is_one_for_an_empty_answer_where_nothing_is_relevant(self) -> None:
        assert one("Abstained", qrels=self.nothing) == 1
        assert one("Abstained", "a", qrels=self.nothing) == 0
        assert math.isnan(one("Abstained", "a"))

    def test_unanswered_query_is_kept_in_the_mean(self) -> None:
        qrels = {"q": {"a": 1}, "r": {"a": 1}}
        frame = evaluate(qrels, ranked("a"), "nDCG@10")
        assert frame["nDCG@10"].tolist() == [1, 0]
        assert frame.attrs["unanswered"] == ["r"]

    def test_failed_query_is_zero_everywhere_also_where_nothing_is_relevant(self) -> None:
        qrels = {"q": {"a": 1}, "r": {"a": 0}}
        run = ranked("a")
        run.attrs["failed"] = ["r"]
        frame = evaluate(qrels, run, ["nDCG@10", "R@5", "RR", "Abstained"])
        assert frame.loc["r"].tolist() == [0, 0, 0, 0]
        assert math.isnan(frame.loc["q", "Abstained"])

    @pytest.mark.parametrize("run", [ranked(), ranked("a", query="elsewhere")])
    def test_system_without_a_result_in_the_set_is_not_run(self, run: pd.DataFrame) -> None:
        run = run.astype({"query_id": "str", "doc_id": "str"})
        frame = evaluate(QRELS, run, ["nDCG@10", "RR", "Abstained"])
        assert frame.isna().all(axis=None)
        assert frame.attrs["not_run"]

    def test_query_outside_the_set_is_ignored_and_counted(self) -> None:
        run = pd.concat([ranked("a"), ranked("a", query="other")])
        frame = evaluate(QRELS, run, "RR")
        assert frame.index.tolist() == ["q"]
        assert frame.attrs["ignored"] == ["other"]

    def test_unjudged_result_counts_as_grade_zero_unless_lists_are_condensed(self) -> None:
        assert one("RR", "z", "a") == 0.5
        assert one("RR", "z", "a", conventions=Conventions(judged_only=True)) == 1
        assert one("P@1", "z", "a", conventions=Conventions(judged_only=True)) == 1
        assert one("Judged@10", "z", "a", conventions=Conventions(judged_only=True)) == 0.5

    def test_ties_in_score_fall_by_document_id_descending(self) -> None:
        run = as_run({"q": {"a": 1.0, "b": 1.0}})
        assert run["doc_id"].tolist() == ["b", "a"]
        assert evaluate(QRELS, run, "nDCG@1").iloc[0, 0] == pytest.approx(1 / 7)

    def test_scores_compare_as_float32(self) -> None:
        run = as_run({"q": {"a": 1.00000001, "b": 1.0}})
        assert run["doc_id"].tolist() == ["b", "a"], "equal as float32, so by document id"

    @pytest.mark.parametrize("twice", ["aa", "zz"])
    def test_same_document_twice_is_refused(self, twice: str) -> None:
        with pytest.raises(InputError, match="twice"):
            evaluate(QRELS, ranked(*twice), "nDCG@10")


def test_more_results_than_the_cutoff_with_every_relevant_one_below_it() -> None:
    docs = [f"z{i}" for i in range(10)] + ["a", "b"]
    assert one("nDCG@10", *docs) == 0
    assert one("R@10", *docs) == 0
    assert one("RR", *docs) == pytest.approx(1 / 11)


def test_several_cutoffs_of_one_measure_at_once() -> None:
    frame = evaluate(QRELS, ranked("z", "a", "b"), ["P@1", "P@2", "P@3"])
    assert frame.iloc[0].tolist() == pytest.approx([0, 1 / 2, 2 / 3])


def test_two_runs_in_one_pass_score_as_they_do_alone() -> None:
    runs = {"x": ranked("a", "b"), "y": ranked("c", "b", "z", "a")}
    together = evaluate(QRELS, runs, ["nDCG@10", "AP", "Bpref", "ERR@10"])
    for name, run in runs.items():
        pd.testing.assert_frame_equal(together[name], evaluate(QRELS, run, ["nDCG@10", "AP", "Bpref", "ERR@10"]))


def test_one_runs_scores_do_not_leak_into_the_next() -> None:
    qrels = {"q": {"a": 3, "b": 1}, "r": {"a": 1}}
    first, second = ranked("a", "b"), ranked("z", query="r")
    before = evaluate(qrels, first, ["nDCG@10", "AP"])
    other = evaluate(qrels, second, ["nDCG@10", "AP"])
    assert other.loc["q"].tolist() == [0, 0]
    pd.testing.assert_frame_equal(evaluate(qrels, first, ["nDCG@10", "AP"]), before)


def test_grades_beyond_the_lookup_table_are_found_by_bisection(monkeypatch: pytest.MonkeyPatch) -> None:
    run = pd.concat([ranked("b", "z", "a"), ranked("a", "c", query="r")])
    qrels = {**QRELS, "r": {"c": 2, "d": 1}}
    usual = evaluate(qrels, run, ["nDCG@10", "AP", "Bpref", "Judged@10"])
    monkeypatch.setattr("searcheval.metrics.coding._CELLS", 0)
    monkeypatch.setattr("searcheval.metrics.coding._ROWS", 1)
    pd.testing.assert_frame_equal(evaluate(qrels, run, ["nDCG@10", "AP", "Bpref", "Judged@10"]), usual)


def test_rank_is_trusted_and_rows_may_stand_in_any_order() -> None:
    run = ranked("b", "a").iloc[::-1].assign(score=[9.0, 1.0])
    assert evaluate(QRELS, run, "nDCG@10").iloc[0, 0] == pytest.approx(0.7098, abs=1e-4)


def test_answerable_follows_each_measures_threshold() -> None:
    frame = answerable({"q": {"a": 1}, "r": {"a": 0}}, ["RR", "RR(rel=2)"])
    assert frame["RR"].tolist() == [True, False]
    assert not frame["RR(rel=2)"].any()


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("ndcg@10", "nDCG@10"),
        ("nDCG", "nDCG"),
        ("NDCG(gain=linear)@10", "nDCG(gain=linear)@10"),
        ("mrr", "RR"),
        ("mrr@10", "RR@10"),
        ("map", "AP"),
        ("map@100", "AP@100"),
        ("recall@20", "R@20"),
        ("precision@10", "P@10"),
        ("hit_rate@5", "Success@5"),
        ("ndcg_cut_10", "nDCG@10"),
        ("P_5", "P@5"),
        ("rbp(p=0.5)", "RBP(p=0.5)"),
        ("ERR@10", "ERR(max=3)@10"),
        ("RR(rel=1)", "RR"),
        ("nDCG@10(gain=linear)", "nDCG(gain=linear)@10"),
    ],
)
def test_names_print_canonically(text: str, canonical: str) -> None:
    assert str(parse_measure(text)) == canonical
    assert str(parse_measure(canonical)) == canonical


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ndgc@10", "did you mean 'nDCG'"),
        ("P", "without a cut-off"),
        ("P@0", "cut-off 0"),
        ("RPrec@5", "a cut-off on RPrec"),
        ("nDCG(gain=cubic)@10", "gain 'cubic'"),
        ("RR(relevance=2)", "'relevance=2'"),
        ("RBP(p=1.5)", "p between 0 and 1"),
        ("nDCG@@10", "a measure such as"),
    ],
)
def test_a_wrong_name_is_one_clear_line(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_measure(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_err_refuses_grades_above_its_maximum() -> None:
    with pytest.raises(InputError, match="grade 3"):
        one("ERR(max=2)@10", "a")


IDS = st.sampled_from(["d1", "d2", "007", "7", "é", "خ", "long-id", "A", "a", "B"])
GRADED = st.dictionaries(
    st.sampled_from(["q1", "q2", "010", "ف"]),
    st.dictionaries(IDS, st.integers(0, 3), min_size=1, max_size=8),
    min_size=1,
)
LISTS = st.dictionaries(
    st.sampled_from(["q1", "q2", "010", "ف", "other"]),
    st.dictionaries(IDS, st.sampled_from([0.0, 0.5, 1.0, 2.5, -1.0]), min_size=1, max_size=8),
    min_size=1,
)
SHARED = {
    "nDCG": "ndcg",
    "nDCG(gain=linear)@3": "ndcg_cut_3",
    "RR": "recip_rank",
    "AP": "map",
    "AP@3": "map_cut_3",
    "P@5": "P_5",
    "R@5": "recall_5",
    "RPrec": "Rprec",
    "Bpref": "bpref",
    "Success@1": "success_1",
    "NumRet": "num_ret",
}


@settings(max_examples=150, deadline=None)
@given(GRADED, LISTS)
def test_agrees_with_trec_eval(qrels: dict[str, dict[str, int]], lists: dict[str, dict[str, float]]) -> None:
    ours = evaluate(
        qrels,
        as_run(lists),
        [m if m != "nDCG" else "nDCG(gain=linear)" for m in SHARED],
        conventions=Conventions(no_relevant="zero"),
    )
    wanted = {"ndcg", "ndcg_cut.3", "recip_rank", "map", "map_cut.3", "P.5", "recall.5", "Rprec", "bpref", "success.1"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, wanted | {"num_ret"}).evaluate(lists)
    for query_id, values in theirs.items():
        if ours.attrs["not_run"]:
            continue
        for name, other in SHARED.items():
            mine = ours.loc[query_id, name if name != "nDCG" else "nDCG(gain=linear)"]
            assert mine == pytest.approx(values[other], abs=1e-9), (query_id, name)


@settings(max_examples=150, deadline=None)
@given(GRADED, LISTS, st.sampled_from(["perfect", "zero", "skip"]), st.booleans())
def test_every_measure_stays_in_its_range(
    qrels: dict[str, dict[str, int]], lists: dict[str, dict[str, float]], no_relevant: str, judged_only: bool
) -> None:
    names = [n + ("@3" if f.cutoff == "required" else "") for n, f in FORMULAS.items() if n != "NumRet"]
    frame = evaluate(qrels, as_run(lists), names, conventions=Conventions(no_relevant, judged_only))  # type: ignore[arg-type]
    values = frame.to_numpy()
    assert ((values >= 0) & (values <= 1 + 1e-12) | np.isnan(values)).all()


@settings(max_examples=100, deadline=None)
@given(GRADED, LISTS)
def test_ideal_ranking_is_perfect(qrels: dict[str, dict[str, int]], lists: dict[str, dict[str, float]]) -> None:
    ideal = as_run({q: {d: float(g) for d, g in judged.items()} for q, judged in qrels.items()})
    frame = evaluate(qrels, ideal, ["nDCG", "AP", "RPrec", "Bpref", "R@100"])
    assert frame.to_numpy() == pytest.approx(1.0)


def test_ten_thousand_deep_list() -> None:
    docs = [f"d{i:05d}" for i in range(10_000)]
    qrels = {"q": {docs[9_999]: 1, docs[0]: 2}}
    assert one("AP", *docs, qrels=qrels) == pytest.approx((1 + 2 / 10_000) / 2)
    assert one("NumRet", *docs, qrels=qrels) == 10_000
