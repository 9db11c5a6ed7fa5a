"""The opening trials of a sweep fill its ranges: the estimator knows nothing before them.

Trial n has the point n of a Halton sequence (Halton 1960; scrambled as by Owen 2017) that the seed scrambles, so that
it depends on the seed and n alone: any first trials are spread over every range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import qmc

from inference.ablation.ranges import Range

__all__ = ["opening_values"]


def opening_values(ranges: Sequence[Range], number: int, seed: int) -> dict[str, float | int | str]:
    """Values of the trial of a number, by flag.

    Args:
        ranges: What is searched; range i has coordinate i of the sequence.
        number: Number of the trial, from zero.
        seed: Seed of the scrambling.
    """
    sequence = qmc.Halton(len(ranges), seed=np.random.default_rng(seed))
    sequence.fast_forward(number)
    return {found.flag: _value(found, float(u)) for found, u in zip(ranges, sequence.random(1)[0], strict=True)}


def _value(found: Range, u: float) -> float | int | str:
    """The value at a share u of the range, 0 <= u < 1: of whole numbers and choices every one has its own part."""
    if found.choices:
        return found.choices[int(u * len(found.choices))]
    if found.is_whole:
        value = round(_between(found.low - 0.5, found.high + 0.5, u, found.is_log))
        return min(max(value, int(found.low)), int(found.high))
    return min(max(_between(found.low, found.high, u, found.is_log), found.low), found.high)


def _between(low: float, high: float, u: float, is_log: bool) -> float:
    return math.exp(_between(math.log(low), math.log(high), u, False)) if is_log else low + u * (high - low)
