"""A collection of documents in PostgreSQL, searched by words (BM25F) and by meaning (cosine)."""

from __future__ import annotations

import hashlib
import json
import threading
import unicodedata
from collections.abc import Collection as AnyOf
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from searcheval.embed import embed_passages, embed_queries, model_name
from searcheval.errors import InputError, nearest
from searcheval.retrieval.bm25f import bm25f_score
from searcheval.retrieval.postgres import LOCK_SEED, LOCK_USE, Connection, connect

# The languages for which PostgreSQL has a stemmer; every other one, Persian too, is split into words and not stemmed.
STEMMERS = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish",
    "et": "estonian", "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian",
    "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian", "nb": "norwegian", "ne": "nepali",
    "nl": "dutch", "nn": "norwegian", "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian",
    "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip

# What ts_debug keeps of each token is what to_tsvector would, without its caps on positions (16,383, and 255 a lexeme),
# which would falsify the counts of long documents. Lexemes that to_tsvector refuses as too long are left out here too.
_LEXEMES = """
    ts_debug(coalesce((SELECT oid::regconfig FROM pg_ts_config
                       WHERE cfgname = {config} AND cfgnamespace = 'pg_catalog'::regnamespace),
                      'pg_catalog.simple'), {text}) WITH ORDINALITY AS token,
    unnest(token.lexemes) AS lexeme
    WHERE octet_length(lexeme) < 2048
"""
_QUERY_TERMS = f"SELECT lexeme FROM {_LEXEMES.format(config='%s', text='%s')} ORDER BY token.ordinality"
_INSERT_POSTINGS = f"""
    INSERT INTO postings (collection, lexeme, doc_id, field, tf, length)
    SELECT %s, lexeme, doc_id, field, count(*), sum(count(*)) OVER (PARTITION BY doc_id, field)
    FROM unnest(%s::text[], %s::smallint[], %s::text[], %s::text[]) AS source (doc_id, field, config, text),
    {_LEXEMES.format(config="source.config", text="source.text")}
    GROUP BY doc_id, field, lexeme
"""
_COUNT_TOKENS = """
    UPDATE collections SET tokens = ARRAY(
        SELECT coalesce((SELECT sum(tf) FROM postings WHERE collection = collections.id AND field = n - 1), 0)
        FROM generate_series(1, cardinality(fields)) AS n ORDER BY n)
    WHERE id = %s
"""

_CHUNK = 500  # documents that are sent to be split into words at once

Match = Literal["all", "any", "all_then_any"]
Results = list[tuple[str, float]]


class _Row(NamedTuple):
    doc_id: str
    lang: str
    texts: tuple[str, ...]  # one a field
    passage: str


@dataclass(eq=False)
class Collection:
    """Documents that `seed` has put into the database, to be searched.

    Attributes
    ----------
    name : str
    digest : str
        First 12 hex characters of the SHA-256 of all that went in.
    fields : tuple of str
    documents : int
        How many.
    average : tuple of float
        Mean number of tokens of each field, over all documents.
    """

    name: str
    digest: str
    fields: tuple[str, ...]
    documents: int
    average: tuple[float, ...]
    _id: int = field(repr=False)
    _held_by: Connection = field(repr=False)

    def terms(self, text: str, lang: str = "en") -> list[str]:
        """The distinct terms that a query becomes: stemmed, without stop words, in order of first occurrence.

        ``lang`` is an ISO 639-1 code (``en``, ``fa``, ``en-GB``). One without a stemmer is only split into words.

        >>> tools = seed("tools", pd.DataFrame({"doc_id": ["d1", "d2"], "name": ["Hammer", "Saw"]}), ["name"])
        >>> tools.terms("running with the hammers")
        ['run', 'hammer']
        """
        rows = connect().execute(_QUERY_TERMS, (_stemmer(lang), _words(text))).fetchall()
        return list(dict.fromkeys(lexeme for (lexeme,) in rows))

    def bm25f(
        self,
        text: str,
        k: int,
        *,
        weights: Mapping[str, float],
        k1: float = 1.2,
        b: float = 0.75,
        lang: str = "en",
        match: Match = "all_then_any",
        among: AnyOf[str] | None = None,
    ) -> Results:
        """Search by words: the formula of `bm25f_score` over the terms of ``text``.

        Parameters
        ----------
        text : str
            The query. If no term is left of it (stop words only), the answer is empty.
        k : int
            How many results at most.
        weights : mapping of field to float
            The fields to search, and what an occurrence in each counts. Fields that are not named are not looked at.
        k1, b : float, default 1.2 and 0.75
            See `bm25f_score`.
        lang : str, default "en"
            Language of the query, see `terms`.
        match : {"all_then_any", "all", "any"}
            ``all``: every distinct term occurs in at least one of the fields; ``any``: one does; ``all_then_any``: as
            ``all``, and where that finds nothing, as ``any``.
        among : collection of doc_id, optional
            Return these only. Scores are the same: idf and average lengths are of the whole collection.

        Returns
        -------
        list of (doc_id, score)
            Best first; equal scores by doc_id, ascending.

        Raises
        ------
        InputError
            If the collection has no such field, or is no longer in the database.
        ValueError
            If a weight is not positive, ``k`` is below 1, or ``match`` is another word.

        Examples
        --------
        >>> tools = seed("tools", pd.DataFrame({"doc_id": ["d1", "d2"], "name": ["Hammer", "Saw"]}), ["name"])
        >>> [doc_id for doc_id, _ in tools.bm25f("hammers", 10, weights={"name": 1})]
        ['d1']
        """
        connection = self._connection()
        searched = self._searched(weights, k, match)
        terms = self.terms(text, lang)
        rows = connection.execute(
            "SELECT doc_id, field, lexeme, tf, length FROM postings"
            " WHERE collection = %s AND lexeme = ANY(%s) AND field = ANY(%s)",
            (self._id, terms, list(searched)),
        ).fetchall()
        if not rows:
            return []
        ids = sorted({row[0] for row in rows})
        at_doc, at_term = {d: i for i, d in enumerate(ids)}, {t: i for i, t in enumerate(terms)}
        at_field = {f: i for i, f in enumerate(searched)}
        tf = np.zeros((len(ids), len(searched), len(terms)))
        length = np.zeros((len(ids), len(searched)))
        for doc_id, in_field, lexeme, count, tokens in rows:
            d, f = at_doc[doc_id], at_field[in_field]
            tf[d, f, at_term[lexeme]], length[d, f] = count, tokens
        holds = np.any(tf > 0, axis=1)  # (documents, terms)
        scores = bm25f_score(
            tf,
            length,
            [self.average[f] for f in searched],
            holds.sum(axis=0),
            self.documents,
            list(searched.values()),
            k1=k1,
            b=b,
        )
        chosen = set(ids if among is None else among)
        kept = np.array([doc_id in chosen for doc_id in ids])
        complete = kept & holds.all(axis=1)
        if match == "all" or (match == "all_then_any" and complete.any()):
            kept = complete
        found = [(ids[i], float(scores[i])) for i in np.flatnonzero(kept)]
        return sorted(found, key=lambda result: (-result[1], result[0]))[:k]

    def dense(self, text: str, k: int, *, among: AnyOf[str] | None = None) -> Results:
        """Search by meaning: cosine of the query's vector with every document's, exactly (no approximate index).

        Parameters
        ----------
        text : str
            The query, in any language of the model.
        k : int
            How many results at most.
        among : collection of doc_id, optional
            Return these only.

        Returns
        -------
        list of (doc_id, cosine)
            Best first; equal scores by doc_id, ascending. The score is pgvector's ``1 - (embedding <=> query)``, which
            agrees with numpy's dot product to 1e-6. With this model even unrelated texts have about 0.75.

        Raises
        ------
        InputError
            If the collection is no longer in the database.
        ValueError
            If ``k`` is below 1.

        Examples
        --------
        >>> tools = seed("tools", pd.DataFrame({"doc_id": ["d1", "d2"], "name": ["Hammer", "Saw"]}), ["name"])
        >>> tools.dense("something to hit a nail with", 1)[0][0]
        'd1'
        """
        connection = self._connection()
        _check_k(k)
        vector = embed_queries([text])[0]
        rows = connection.execute(
            "SELECT doc_id, 1 - (embedding <=> %(vector)s) AS score FROM documents"
            " WHERE collection = %(id)s AND (%(among)s::text[] IS NULL OR doc_id = ANY(%(among)s))"
            " ORDER BY score DESC, doc_id LIMIT %(k)s",
            {"vector": vector, "id": self._id, "among": None if among is None else list(among), "k": k},
        ).fetchall()
        return [(doc_id, score) for doc_id, score in rows]

    def _connection(self) -> Connection:
        """The process's connection, which holds this collection against deletion."""
        connection = connect()
        if connection is not self._held_by:  # a new one: after a fork, or because the old one was lost
            if not _hold(connection, self._id, self.name, self.digest):
                found = f"collection {self.name!r} ({self.digest}) gone from the database"
                raise InputError("retrieval", None, found, "seed() to be called again")
            self._held_by = connection
        return connection

    def _searched(self, weights: Mapping[str, float], k: int, match: str) -> dict[int, float]:
        _check_k(k)
        if match not in ("all", "any", "all_then_any"):
            raise ValueError(f"match={match!r}: one of 'all', 'any', 'all_then_any'")
        for name, weight in weights.items():
            if name not in self.fields:
                raise InputError("weights", None, f"field {name!r}", nearest(name, self.fields))
            if not weight > 0:
                raise ValueError(f"weight {weight!r} of field {name!r} is not positive")
        return {self.fields.index(name): float(weight) for name, weight in weights.items()}


_seeding = threading.Lock()  # transactions of two threads on one connection would nest


def seed(
    name: str,
    documents: pd.DataFrame,
    fields: Sequence[str],
    passages: Sequence[str] | None = None,
    *,
    default_lang: str = "en",
) -> Collection:
    """Put documents into the database, unless these very ones are there, and return them ready to be searched.

    It is all or nothing: one transaction inserts the collection and deletes older versions of the same name, except
    those that a living process uses. Two processes that seed the same documents at once end with one copy.

    Parameters
    ----------
    name : str
        Of the collection; a suite's name, say.
    documents : DataFrame
        Columns ``doc_id``, the ``fields``, and optionally ``lang``. A missing text is an empty one.
    fields : sequence of str
        Columns of text to be searched by words.
    passages : sequence of str, optional
        The text to embed for each document, in the order of the rows. By default its non-empty fields, a line each.
    default_lang : str, default "en"
        For documents without ``lang``. PostgreSQL stems in the languages of `STEMMERS`.

    Returns
    -------
    Collection

    Raises
    ------
    InputError
        If there are no documents, a column is missing, a doc_id is repeated or no string, or a field holds no text.
    ValueError
        If there are not as many passages as documents.

    Examples
    --------
    >>> rows = [("d1", "Hammer", "drives nails"), ("d2", "Saw", "cuts boards")]
    >>> tools = seed("tools", pd.DataFrame(rows, columns=["doc_id", "title", "text"]), ["title", "text"])
    >>> tools.documents, tools.average
    (2, (1.0, 2.0))
    """
    rows = _rows(documents, fields, passages, default_lang)
    content = json.dumps([model_name(), list(fields), rows])
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    with _seeding:
        connection = connect()
        if found := _find(connection, name, digest):
            return found
        vectors = embed_passages([row.passage for row in rows])
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (LOCK_SEED, name))
            found = _find(connection, name, digest)  # by another process, while we embedded or waited
            if not found:
                _insert(connection, name, digest, list(fields), rows, vectors)
                found = _find(connection, name, digest)
                _delete_others(connection, name, digest)
    assert found is not None
    return found


def _rows(
    documents: pd.DataFrame, fields: Sequence[str], passages: Sequence[str] | None, default_lang: str
) -> list[_Row]:
    if missing := [column for column in ("doc_id", *fields) if column not in documents.columns]:
        raise InputError("documents", None, f"no column {missing[0]!r}", nearest(missing[0], documents.columns))
    if not len(documents) or not fields or len(set(fields)) < len(fields):
        found = f"{len(documents)} documents, fields {list(fields)}"
        raise InputError("documents", None, found, "one or more of both, each field once")
    if passages is not None and len(passages) != len(documents):
        raise ValueError(f"{len(passages)} passages for {len(documents)} documents")
    ids = documents["doc_id"].tolist()
    texts = list(zip(*([_text(v, f) for v in documents[f].tolist()] for f in fields), strict=True))
    if "lang" in documents.columns:
        langs = [_text(v, "lang") or default_lang for v in documents["lang"].tolist()]
    else:
        langs = [default_lang] * len(ids)
    if passages is None:
        passages = ["\n".join(filter(None, row)) for row in texts]
    rows = sorted(map(_Row, ids, langs, texts, passages), key=lambda row: str(row.doc_id))
    for before, row in zip([None, *rows], rows, strict=False):
        if not isinstance(row.doc_id, str):
            raise InputError("documents", None, f"doc_id {row.doc_id!r}", "a string: documents['doc_id'].astype(str)")
        if before and before.doc_id == row.doc_id:
            raise InputError("documents", None, f"doc_id {row.doc_id!r} twice", "each document once")
    return rows


def _text(value: object, column: str) -> str:
    if isinstance(value, str):
        return value
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return ""
    raise InputError("documents", None, f"{value!r} in column {column!r}", "text; join a list, format a number")


def _find(connection: Connection, name: str, digest: str) -> Collection | None:
    """The collection, held against deletion for as long as the connection lives; None if it is not there."""
    row = connection.execute(
        "SELECT id, fields, documents, tokens FROM collections WHERE name = %s AND digest = %s", (name, digest)
    ).fetchone()
    if row is None or not _hold(connection, row[0], name, digest):
        return None
    id_, fields, documents, tokens = row
    return Collection(name, digest, tuple(fields), documents, tuple(t / documents for t in tokens), id_, connection)


def _hold(connection: Connection, id_: int, name: str, digest: str) -> bool:
    connection.execute("SELECT pg_advisory_lock_shared(%s, %s)", (LOCK_USE, id_))
    # It may have been deleted while we waited for the lock.
    query = "SELECT FROM collections WHERE id = %s AND name = %s AND digest = %s"
    if connection.execute(query, (id_, name, digest)).fetchone() is not None:
        return True
    connection.execute("SELECT pg_advisory_unlock_shared(%s, %s)", (LOCK_USE, id_))
    return False


def _insert(
    connection: Connection, name: str, digest: str, fields: list[str], rows: list[_Row], vectors: NDArray[np.float32]
) -> None:
    row = connection.execute(
        "INSERT INTO collections (name, digest, fields, documents, tokens) VALUES (%s, %s, %s, %s, '{}') RETURNING id",
        (name, digest, fields, len(rows)),
    ).fetchone()
    assert row is not None
    (id_,) = row
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO documents (collection, doc_id, embedding) VALUES (%s, %s, %s)",
            [(id_, row.doc_id, vector) for row, vector in zip(rows, vectors, strict=True)],
        )
    for start in range(0, len(rows), _CHUNK):
        cells = [
            (row.doc_id, at, _stemmer(row.lang), _words(text))
            for row in rows[start : start + _CHUNK]
            for at, text in enumerate(row.texts)
        ]
        connection.execute(_INSERT_POSTINGS, (id_, *map(list, zip(*cells, strict=True))))
    connection.execute(_COUNT_TOKENS, (id_,))


def _delete_others(connection: Connection, name: str, digest: str) -> None:
    # Our own locks would not stop us, so versions that this process uses are excluded by name.
    others = connection.execute(
        "SELECT id FROM collections WHERE name = %s AND digest <> %s AND id NOT IN ("
        "  SELECT objid::integer FROM pg_locks"
        "  WHERE locktype = 'advisory' AND classid::bigint = %s AND pid = pg_backend_pid())",
        (name, digest, LOCK_USE),
    ).fetchall()
    for (id_,) in others:
        row = connection.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", (LOCK_USE, id_)).fetchone()
        if row == (True,):
            connection.execute("DELETE FROM collections WHERE id = %s", (id_,))


def _stemmer(lang: str) -> str:
    return STEMMERS.get(lang.lower().replace("_", "-").split("-")[0], "simple")


def _words(text: str) -> str:
    """``text`` so that PostgreSQL splits it alike under every locale: lower case; beyond ASCII only letters and digits.

    Under the C locale it takes every character beyond ASCII for a letter, an Arabic question mark or a joiner too.
    """
    text = unicodedata.normalize("NFKC", text).lower()
    if not text.isascii():
        text = "".join(c if c.isascii() or _is_word(c) else " " for c in text)
    return text.replace("\0", " ")


def _is_word(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LM" or category == "Nd"


def _check_k(k: int) -> None:
    if k < 1:
        raise ValueError(f"k={k}: at least one result must be asked for")
