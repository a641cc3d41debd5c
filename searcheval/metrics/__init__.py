"""Measures of ranked lists against graded judgments.

Every measure is one small function over flat integer arrays that hold the lists of all systems at once; its name, with
its parameters, is a :class:`Measure`, which prints as it is written: ``nDCG(gain=linear)@10``.
"""

from searcheval.metrics.formulas import FORMULAS, GAINS, discount, gain_exponential, gain_linear
from searcheval.metrics.names import Measure, parse_measure
from searcheval.metrics.scoring import DEFAULT, Conventions, answerable, evaluate
from searcheval.metrics.similarity import overlap

__all__ = [
    "DEFAULT",
    "FORMULAS",
    "GAINS",
    "Conventions",
    "Measure",
    "answerable",
    "discount",
    "evaluate",
    "gain_exponential",
    "gain_linear",
    "overlap",
    "parse_measure",
]
