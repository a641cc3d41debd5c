"""Measures by name: ``nDCG(gain=linear)@10`` and its aliases, parsed and printed canonically."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from searcheval import schema
from searcheval.errors import InputError, nearest
from searcheval.metrics.formulas import FORMULAS, GAINS


@dataclass(frozen=True)
class Measure:
    """A measure with its parameters and cut-off; equal when they are, and printed canonically.

    Examples
    --------
    >>> str(parse_measure("ndcg@10")), parse_measure("RR(rel=2)").params["rel"]
    ('nDCG@10', 2)
    """

    name: str
    cutoff: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        formula = FORMULAS[self.name]
        shown = [f"{k}={v}" for k, v in self.params.items() if k in formula.always or v != formula.defaults[k]]
        return self.name + (f"({','.join(shown)})" if shown else "") + (f"@{self.cutoff}" if self.cutoff else "")

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def rel(self) -> int:
        """The lowest grade that this measure counts as relevant."""
        return int(self.params.get("rel", 1))


_NAMES = {n.lower(): name for name, f in FORMULAS.items() for n in (name, *f.aliases)}
_SHAPE = re.compile(r"^\s*([A-Za-z][A-Za-z0-9_-]*?)\s*(?:\(([^()]*)\))?\s*(?:[@_]\s*([0-9]+))?\s*$")


def parse_measure(text: str | Measure, *, max_grade: int = schema.MAX_GRADE) -> Measure:
    """A measure from its name.

    Parameters
    ----------
    text : str or Measure
        ``nDCG@10``, ``RR(rel=2)``, ``nDCG(gain=linear)@10``; aliases such as ``ndcg@10``, ``mrr``, ``recall@20`` and
        trec_eval's ``ndcg_cut_10`` are understood. Case does not matter.
    max_grade : int
        The top of the scale, used by ``ERR`` where the name gives none.

    Raises
    ------
    InputError
        For an unknown measure (the nearest is suggested), parameter, value or a missing cut-off.

    Examples
    --------
    >>> [str(parse_measure(m)) for m in ("ndcg@10", "mrr", "recall@20", "map", "ERR@10", "rbp")]
    ['nDCG@10', 'RR', 'R@20', 'AP', 'ERR(max=3)@10', 'RBP(p=0.8)']
    """
    if isinstance(text, Measure):
        return text

    def error(found: str, expected: str) -> InputError:
        return InputError(f"measure {str(text)!r}", None, found, expected)

    # The cut-off may stand before the parameters too.
    written_out = re.sub(r"^\s*([A-Za-z][\w-]*?)\s*@\s*([0-9]+)\s*(\([^()]*\))\s*$", r"\1\3@\2", str(text))
    match = _SHAPE.match(written_out)
    if match is None:
        raise error(repr(text), "a measure such as nDCG@10 or RR(rel=2)")
    written, inside, cut = match.groups()
    name = _NAMES.get(written.lower())
    if name is None:
        close = nearest(written.lower(), _NAMES)
        suggestion = re.search(r"did you mean '(.+)'", close)
        names = ", ".join(FORMULAS)
        raise error(
            f"unknown measure {written!r}",
            f"one of {names}" + (f" (did you mean {_NAMES[suggestion.group(1)]!r}?)" if suggestion else ""),
        )
    formula = FORMULAS[name]
    params = dict(formula.defaults)
    if "max" in params:
        params["max"] = max_grade
    for item in filter(None, (i.strip() for i in (inside or "").split(","))):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or key not in params:
            raise error(repr(item), f"{name} with {nearest(key, params)}" if params else f"{name} without parameters")
        params[key] = _parameter(key, value, error)
    if formula.cutoff == "required" and cut is None:
        raise error(f"{written} without a cut-off", f"{name}@10, say")
    if formula.cutoff == "none" and cut is not None:
        raise error(f"a cut-off on {name}", f"{name} alone: it is defined on the whole list")
    if cut is not None and int(cut) < 1:
        raise error(f"cut-off {cut}", "a cut-off of 1 or more")
    return Measure(name, int(cut) if cut else None, params)


def _parameter(key: str, value: str, error: Callable[[str, str], InputError]) -> Any:
    if key == "gain":
        if value not in GAINS:
            raise error(f"gain {value!r}", nearest(value, GAINS))
        return value
    try:
        number = float(value) if key == "p" else int(value)
    except ValueError:
        raise error(f"{key}={value}", f"{key} as a number") from None
    if (key == "p" and not 0 < number < 1) or (key != "p" and number < 1):
        raise error(f"{key}={value}", "p between 0 and 1" if key == "p" else f"{key} of 1 or more")
    return number
