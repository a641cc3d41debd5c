"""The demonstration suite `data/services` keeps the promises of its README."""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import snowballstemmer

FOLDER = Path(__file__).resolve().parents[1] / "data" / "services"
GENUINE, STUFFED = "weather-forecast", "best-weather-forecast"
CATEGORIES = ("exact-name", "paraphrase", "filtered", "no-result", "adversarial")
DOCUMENT_KEYS = [
    "doc_id",
    "title",
    "text",
    "tags",
    "url",
    "type",
    "network",
    "asset",
    "price",
    "settlements",
    "last_settled",
    "lang",
]
QUERY_KEYS = ["query_id", "text", "category", "lang", "note"]
QRELS_COLUMNS = ["query_id", "doc_id", "relevance", "source", "judge", "reason"]

# What each filtered query demands of a document, written out by hand.
CONSTRAINTS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "q07": lambda document: document["network"] == "stellar:pubnet",
    "q08": lambda document: document["price"] < 5,
    "q09": lambda document: document["asset"] == "USDC",
}

# The English stop words of the Snowball project, as PostgreSQL's `english` dictionary has them.
STOP_WORD_LIST = """
a about above after again against all am an and any are as at be because been before being below between both but
by can did do does doing don down during each few for from further had has have having he her here hers herself
him himself his how i if in into is it its itself just me more most my myself no nor not now of off on once only
or other our ours ourselves out over own s same she should so some such t than that the their theirs them
themselves then there these they this those through to too under until up very was we were what when where which
while who whom why will with you your yours yourself yourselves
"""
STOP_WORDS = frozenset(STOP_WORD_LIST.split())


def read_jsonl(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def read_qrels() -> list[dict[str, str]]:
    with (FOLDER / "qrels.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


DOCUMENTS = {document["doc_id"]: document for document in read_jsonl("documents.jsonl")}
QUERIES = {query["query_id"]: query for query in read_jsonl("queries.jsonl")}
QRELS = read_qrels()
GRADES = {(row["query_id"], row["doc_id"]): int(row["relevance"]) for row in QRELS}


def of_category(category: str) -> list[str]:
    return [query_id for query_id, query in QUERIES.items() if query["category"] == category]


def relevant(query_id: str) -> list[str]:
    return [doc_id for doc_id in DOCUMENTS if GRADES[query_id, doc_id] > 0]


def stems(text: str) -> set[str]:
    words = set(re.findall(r"[^\W_]+", text.lower())) - STOP_WORDS
    return set(snowballstemmer.stemmer("english").stemWords(sorted(words)))


def document_stems(document: dict[str, Any]) -> set[str]:
    fields = [document["doc_id"], document["title"], document["text"], *document["tags"], document["url"]]
    return stems(" ".join(fields))


def test_eighteen_documents_with_unique_ids() -> None:
    assert len(read_jsonl("documents.jsonl")) == len(DOCUMENTS) == 18


@pytest.mark.parametrize("doc_id", DOCUMENTS)
def test_document_is_well_formed(doc_id: str) -> None:
    document = DOCUMENTS[doc_id]
    assert list(document) == DOCUMENT_KEYS
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", doc_id)
    assert 30 <= len(document["text"].split()) <= 70
    assert 3 <= len(document["tags"]) <= 6
    assert re.match(r"https://[a-z.-]+\.example/", document["url"])
    assert document["type"] in {"http", "mcp"}
    assert document["network"] in {"stellar:testnet", "stellar:pubnet"}
    assert document["asset"] in {"USDC", "XLM", "EURC"}
    assert document["price"] > 0
    assert isinstance(document["settlements"], int)
    assert date.fromisoformat(document["last_settled"]) < date(2026, 12, 1)
    assert document["lang"] == "en"


def test_fifteen_queries_three_in_each_category() -> None:
    assert len(read_jsonl("queries.jsonl")) == 15
    assert list(QUERIES) == [f"q{number:02}" for number in range(1, 16)]
    assert Counter(query["category"] for query in QUERIES.values()) == dict.fromkeys(CATEGORIES, 3)
    assert all(list(query) == QUERY_KEYS and all(query.values()) for query in QUERIES.values())


def test_every_pair_is_judged_exactly_once() -> None:
    pairs = Counter((row["query_id"], row["doc_id"]) for row in QRELS)
    assert pairs == {(query_id, doc_id): 1 for query_id in QUERIES for doc_id in DOCUMENTS}
    assert all(list(row) == QRELS_COLUMNS for row in QRELS)
    assert {row["relevance"] for row in QRELS} == {"0", "1", "2", "3"}
    assert {(row["source"], row["judge"]) for row in QRELS} == {("gold", "makers:searcheval")}


def test_each_grade_has_its_reason() -> None:
    for row in QRELS:
        query_id, document = row["query_id"], DOCUMENTS[row["doc_id"]]
        if int(row["relevance"]) > 0:
            assert row["reason"], row
        elif row["reason"]:  # a zero is explained only where a constraint is what made it one
            assert row["reason"].startswith("Fails the "), row
            assert query_id in CONSTRAINTS, row
            assert not CONSTRAINTS[query_id](document), row


def test_answerable_queries_have_an_answer_and_the_others_only_zeros() -> None:
    for query_id, query in QUERIES.items():
        best = max(GRADES[query_id, doc_id] for doc_id in DOCUMENTS)
        assert best == (0 if query["category"] == "no-result" else 3), query_id


def test_the_required_queries_are_there() -> None:
    texts = {query["text"]: query["category"] for query in QUERIES.values()}
    assert texts["is it going to rain tomorrow"] == texts["how much is bitcoin worth right now"] == "paraphrase"
    assert texts["compose a symphony from scratch"] == texts["predict next week lottery numbers"] == "no-result"


def test_exact_names_are_titles() -> None:
    for query_id in of_category("exact-name"):
        (answer,) = [doc_id for doc_id in DOCUMENTS if GRADES[query_id, doc_id] == 3]
        assert QUERIES[query_id]["text"] == DOCUMENTS[answer]["title"].lower()


def test_constraints_are_known_for_every_filtered_query() -> None:
    assert list(CONSTRAINTS) == of_category("filtered")


@pytest.mark.parametrize("query_id", CONSTRAINTS)
def test_documents_that_fail_a_constraint_have_grade_zero(query_id: str) -> None:
    failing = [doc_id for doc_id, document in DOCUMENTS.items() if not CONSTRAINTS[query_id](document)]
    assert {GRADES[query_id, doc_id] for doc_id in failing} == {0}


@pytest.mark.parametrize("query_id", CONSTRAINTS)
def test_each_constraint_excludes_something_on_topic(query_id: str) -> None:
    assert any(row["reason"] for row in QRELS if row["query_id"] == query_id and row["relevance"] == "0")


@pytest.mark.parametrize("query_id", of_category("paraphrase"))
def test_paraphrases_share_no_stem_with_a_relevant_document(query_id: str) -> None:
    query_stems = stems(QUERIES[query_id]["text"])
    assert len(query_stems) >= 3
    for doc_id in relevant(query_id):
        assert not query_stems & document_stems(DOCUMENTS[doc_id]), doc_id


def test_the_stem_check_sees_shared_stems() -> None:
    assert stems("Is it going to be raining, or not?") == {"go", "rain"}
    for query_id in of_category("exact-name"):
        assert stems(QUERIES[query_id]["text"]) & document_stems(DOCUMENTS[relevant(query_id)[0]])


def test_the_stuffed_listing_is_a_poor_copy_on_the_other_network() -> None:
    genuine, stuffed = DOCUMENTS[GENUINE], DOCUMENTS[STUFFED]
    assert genuine["network"] != stuffed["network"]
    assert stuffed["settlements"] < genuine["settlements"] / 100
    assert stuffed["text"].lower().count("weather") >= 10 > genuine["text"].lower().count("weather")
    assert sum("weather" in tag for tag in stuffed["tags"]) >= 4


def test_the_stuffed_listing_never_has_a_grade_above_one() -> None:
    grades = {query_id: GRADES[query_id, STUFFED] for query_id in QUERIES}
    assert set(grades.values()) == {0, 1}
    assert all(GRADES[query_id, GENUINE] == 3 for query_id, grade in grades.items() if grade == 1)


def test_two_adversarial_queries_set_the_genuine_listing_against_the_stuffed_one() -> None:
    pairs = [(GRADES[query_id, GENUINE], GRADES[query_id, STUFFED]) for query_id in of_category("adversarial")]
    assert pairs.count((3, 1)) == 2


def test_one_title_is_shared_by_an_http_resource_and_an_mcp_tool() -> None:
    titles = Counter(document["title"] for document in DOCUMENTS.values())
    (shared,) = [title for title, count in titles.items() if count > 1]
    namesakes = {document["type"]: document for document in DOCUMENTS.values() if document["title"] == shared}
    assert titles[shared] == 2
    assert set(namesakes) == {"http", "mcp"}
    assert namesakes["http"]["network"] != namesakes["mcp"]["network"]
    verdicts = [tuple(GRADES[query_id, namesakes[kind]["doc_id"]] for kind in ("mcp", "http")) for query_id in QUERIES]
    assert (3, 0) in verdicts
