"""Turning text into tokens: the one tokeniser outside PostgreSQL."""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"[^\W_]+(?:\.[0-9]+)?")


def tokens(text: str) -> list[str]:
    """Words and numbers of ``text`` in order, in compatibility form (NFKC) and case-folded.

    Letters, digits and their combining marks make a token; a decimal point inside a number stays, so that a price
    survives.

    >>> tokens("Rain-Radar, below $1.50 (ＵＳＤＣ)")
    ['rain', 'radar', 'below', '1.50', 'usdc']
    """
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
