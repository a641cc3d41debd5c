"""The three systems of the `services` suite, side by side so that each stage's worth shows; and how to add one.

A system is a factory ``make(ds) -> search``, with ``search(query, k) -> [(doc_id, score)]``, best first. What is
particular to this catalog (networks, assets and prices read out of a query, ties by settlements) is here and not in the
package.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from searcheval import PartialResult
from searcheval.retrieval import Collection, reciprocal_rank_fusion, seed
from searcheval.text import tokens

if TYPE_CHECKING:
    from searcheval import Dataset

# Untuned: round numbers that say "a word in the name counts for more than one in the address".
WEIGHTS = {"title": 3.0, "tags": 3.0, "text": 1.0, "url": 0.5}
RRF_K = 60

Results = list[tuple[str, float]]


def catalog(ds: Dataset) -> Collection:
    """The suite's documents in PostgreSQL, each field as plain text; done once, and again only when they change."""
    fields = ds.documents[["doc_id", "title", "text", "lang"]].copy()
    fields["tags"] = [" ".join(tags) for tags in ds.documents["tags"]]
    # An address is one token to PostgreSQL; its parts are what people search for.
    fields["url"] = [re.sub(r"[^0-9A-Za-z]+", " ", url) for url in ds.documents["url"]]
    passages = [f"{d.title}. {d.text} {d.tags}" for d in fields.itertuples()]
    return seed(ds.name, fields, list(WEIGHTS), passages)


def bm25(ds: Dataset):
    """BM25F over title, tags, text and address: all terms first, any term where that finds nothing."""
    index = catalog(ds)

    def search(query: pd.Series, k: int) -> Results:
        return index.bm25f(query["text"], k, weights=WEIGHTS, lang=query["lang"])

    return search


def dense(ds: Dataset):
    """Exact cosine between the embeddings of query and document."""
    index = catalog(ds)

    def search(query: pd.Series, k: int) -> Results:
        return index.dense(query["text"], k)

    return search


def fused(ds: Dataset):
    """The served system: hard constraints read from the query, then both arms fused by rank alone."""
    return Fused(ds)


@dataclass(frozen=True)
class Constraints:
    """What a query demands, and the words that are left to search with."""

    words: str
    network: str | None = None
    asset: str | None = None
    below: float | None = None

    def allowed(self, documents: pd.DataFrame) -> list[str]:
        """Ids of the documents that meet every demand; a document without the attribute meets none."""
        keep = pd.Series(True, index=documents.index)
        if self.network is not None:
            keep &= documents["network"] == self.network
        if self.asset is not None:
            keep &= documents["asset"] == self.asset
        if self.below is not None:
            keep &= documents["price"] < self.below
        return documents.loc[keep, "doc_id"].tolist()

    def __str__(self) -> str:
        said = [f"network {self.network}"] if self.network else []
        said += [f"asset {self.asset}"] if self.asset else []
        said += [f"price below {self.below:g}"] if self.below is not None else []
        return ", ".join(said) or "no constraint"


NETWORK = re.compile(r"\b(?:on |over |via )?(?:the )?(?:stellar )?(testnet|pubnet)\b(?: network)?")
ASSET = re.compile(r"\b(?:paid |payable |priced )?(?:in |with |for )?(usdc|eurc|xlm)\b")
# A number after these words is a price unless a unit of something else follows ("under 5 minutes").
PRICE = re.compile(
    r"\b(?:for |at |priced |costs |costing )?(?:under|below|(?:less|cheaper|lower) than) (\d+(?:\.\d+)?)\b"
    r"(?: (?:dollars?|usd|bucks?)\b)?(?=$| (?:usdc|eurc|xlm|on|over|via|in|with|per|a|each|paid|and|for)\b)"
)


def read_constraints(text: str) -> Constraints:
    """Network, asset and price demanded by a query, and the query without the words that say so.

    >>> read_constraints("image generation under $5 on stellar:pubnet")
    Constraints(words='image generation', network='stellar:pubnet', asset=None, below=5.0)
    """
    words = " ".join(tokens(text))
    found: dict[str, str] = {}
    for name, pattern in (("price", PRICE), ("network", NETWORK), ("asset", ASSET)):
        match = pattern.search(words)
        if match:
            found[name] = match[1]
            words = " ".join((words[: match.start()] + " " + words[match.end() :]).split())
    return Constraints(
        words=words,
        network=f"stellar:{found['network']}" if "network" in found else None,
        asset=found["asset"].upper() if "asset" in found else None,
        below=float(found["price"]) if "price" in found else None,
    )


class Fused:
    """Constraints, then reciprocal rank fusion of the all-terms lexical arm and the dense arm."""

    def __init__(self, ds: Dataset) -> None:
        self.documents = ds.documents
        self.index = catalog(ds)
        used = ds.documents.sort_values(["settlements", "last_settled"], ascending=False)
        # Exact ties go to what is used most, then to what was used last.
        self.place = {doc_id: place for place, doc_id in enumerate(used["doc_id"])}

    def __call__(self, query: pd.Series, k: int) -> Results:
        demand = read_constraints(query["text"])
        arms, trouble = self.arms(demand, query["lang"], k)
        results = self.fuse(arms.values())[:k]
        if trouble:
            raise PartialResult(results, trouble)
        return results

    def arms(self, demand: Constraints, lang: str, k: int) -> tuple[dict[str, Results], str | None]:
        """Each arm's list among the documents that may be returned at all, and what went wrong if anything did."""
        among = demand.allowed(self.documents)
        lexical = self.index.bm25f(demand.words, k, weights=WEIGHTS, lang=lang, match="all", among=among)
        try:
            return {"lexical": lexical, "dense": self.index.dense(demand.words, k, among=among)}, None
        except Exception as error:
            return {"lexical": lexical}, f"the dense arm failed: {type(error).__name__}: {error}"

    def fuse(self, arms) -> Results:
        lists = [[doc_id for doc_id, _ in results] for results in arms]
        return reciprocal_rank_fusion(lists, RRF_K, tie_break=self.place.__getitem__)

    def explain(self, query: pd.Series, k: int) -> list[tuple[str, pd.DataFrame]]:
        """The steps behind one list, for notebook 01."""
        demand = read_constraints(query["text"])
        arms, _ = self.arms(demand, query["lang"], k)
        allowed = self.documents["doc_id"].isin(demand.allowed(self.documents))
        out = self.documents.loc[~allowed, ["type", "doc_id", "network", "asset", "price"]].set_index("type")
        read = f"read from the query: {demand}; searched for “{demand.words}”; documents left out: {len(out)}"
        steps = [(read, out)]
        steps += [(f"the {arm} arm finds {len(results)}", _ranked(results)) for arm, results in arms.items()]
        ranks = {arm: {doc_id: rank for rank, (doc_id, _) in enumerate(results, 1)} for arm, results in arms.items()}
        fused = _ranked(self.fuse(arms.values()))
        for arm, places in ranks.items():
            fused[f"{arm} rank"] = fused["doc_id"].map(places).astype("Int64")
        return [*steps, ("fused by rank, which is the list it returns", fused)]


def _ranked(results: Results) -> pd.DataFrame:
    return pd.DataFrame(results, columns=["doc_id", "score"], index=pd.RangeIndex(1, len(results) + 1, name="rank"))
