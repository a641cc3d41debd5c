from __future__ import annotations

import pytest

from searcheval.text import tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Is it going to RAIN?", ["is", "it", "going", "to", "rain"]),
        ("below $2, cheaper than 1.5!", ["below", "2", "cheaper", "than", "1.5"]),
        ("stellar:pubnet", ["stellar", "pubnet"]),
        ("full-width ＵＳＤＣ", ["full", "width", "usdc"]),
        ("Straße", ["strasse"]),
        ("قیمت کفش", ["قیمت", "کفش"]),
        ("a_b", ["a", "b"]),
        ("", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected
