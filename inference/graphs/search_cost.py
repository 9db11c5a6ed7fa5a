"""Whether all graphs are scored in about a second, told before they are."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

__all__ = ["counts_are_quick", "is_quick", "steps_to_rest"]

_N_CLASSES = {1: 1, 2: 2, 3: 11, 4: 185}
"""Markov equivalence classes over so many nodes."""

_MOST_WORK = 1e9
"""Steps of EM times samples, cells and classes: 0.7 to 1.5 s of one core (docs/dag.md)."""

_MOST_SUMMED_NODES = 8
_MOST_CELLS = 2**10
_MOST_STEPS = 500
_REST = 1e-6


def is_quick(log_likelihood: np.ndarray, outcomes: Sequence[int], times: int = 1) -> bool:
    """Whether `score_classes` takes about a second at most; it is decided by the data alone, not by a clock.

    Where clusters overlap much, EM takes hundreds of steps instead of ten. How many is told by EM for p(N) without a
    graph, which costs what one class does.

    Args:
        log_likelihood: log p(x_n | c), `[n, C]`, up to a constant per sample.
        outcomes: Number of outcomes of each node; five nodes and more take too long.
        times: How often all graphs are scored.
    """
    if len(outcomes) not in _N_CLASSES:
        return False
    return _rests_in_time(log_likelihood, log_likelihood.shape[0] * prod(outcomes) * _N_CLASSES[len(outcomes)] * times)


def counts_are_quick(log_likelihood: np.ndarray, outcomes: Sequence[int]) -> bool:
    """Whether counts behind the clusters (`deconvolve`), and sums over graphs from them, take about a second at most.

    Args:
        log_likelihood: log p(x_n | c), `[n, C]`, up to a constant per sample.
        outcomes: Number of outcomes of each node; more than eight nodes take too long.
    """
    n_cells = prod(outcomes)
    if len(outcomes) > _MOST_SUMMED_NODES or n_cells > _MOST_CELLS:
        return False
    return _rests_in_time(log_likelihood, 2 * log_likelihood.shape[0] * n_cells)  # EM here, and then for the counts


def _rests_in_time(log_likelihood: np.ndarray, work: int) -> bool:
    """Whether EM takes so few steps, of so much work each, that it is done in time."""
    most = min(int(_MOST_WORK / work), _MOST_STEPS)
    return most >= _MOST_STEPS or steps_to_rest(log_likelihood, most) is not None


def steps_to_rest(log_likelihood: np.ndarray, most: int) -> int | None:
    """Steps of EM for p(N) without a graph until one adds less than 1e-6 nats; None where it takes more than `most`.

    Args:
        log_likelihood: `[n, C]`.
        most: Number of steps after which to give up.
    """
    weight = np.exp(log_likelihood - log_likelihood.max(1, keepdims=True))
    share, before = np.full(weight.shape[1], 1 / weight.shape[1]), -np.inf
    for step in range(most):
        evidence = weight @ share
        now = float(np.log(evidence).sum())
        if now - before <= _REST:
            return step
        share, before = share * ((1 / evidence) @ weight) / len(weight), now
    return None
