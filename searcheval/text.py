"""Turning text into tokens: the one tokeniser outside PostgreSQL."""

from __future__ import annotations

import re
import unicodedata

FSI, PDI = "\u2068", "\u2069"
_WORD = re.compile(r"[^\W_]+(?:\.[0-9]+)?")


def isolate(name: str) -> str:
    """``name`` so that it keeps its own direction inside a sentence of another, and cannot turn the sentence around.

    >>> isolate("bm25")
    'bm25'
    >>> [f"{ord(c):x}" for c in isolate("ه")]
    ['2068', '647', '2069']
    """
    return name if name.isascii() else f"{FSI}{name}{PDI}"


def tokens(text: str) -> list[str]:
    """Words and numbers of ``text`` in order, in compatibility form (NFKC) and case-folded.

    Letters, digits and their combining marks make a token; a decimal point inside a number stays, so that a price
    survives.

    >>> tokens("Rain-Radar, below $1.50 (ＵＳＤＣ)")
    ['rain', 'radar', 'below', '1.50', 'usdc']
    """
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
