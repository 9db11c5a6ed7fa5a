"""Limits of a rate by the number of times that something happened, and p-values by such a number."""

from __future__ import annotations

import numpy as np
from scipy.stats import beta

__all__ = ["one_sided_lower", "one_sided_upper", "permutation_p_value"]


def one_sided_upper(number: int, total: int, confidence: float = 0.95) -> float:
    r"""Upper limit of a probability (Clopper and Pearson 1934): $\sum_{k \le x} \binom{n}{k} p^k (1-p)^{n-k} = 1 - c$.

    Args:
        number: How often it happened, x.
        total: Of how many times, n.
        confidence: c.
    """
    return 1.0 if number == total else float(beta.ppf(confidence, number + 1, total - number))


def one_sided_lower(number: int, total: int, confidence: float = 0.95) -> float:
    """Lower limit of a probability, by symmetry: one minus the upper limit of the opposite.

    Args:
        number: How often it happened.
        total: Of how many times.
        confidence: Of the limit.
    """
    return 1.0 - one_sided_upper(total - number, total, confidence)


def permutation_p_value(observed: float, permuted: np.ndarray) -> float:
    """(1 + permutations with a value at least as large) / (1 + permutations): never 0 (Phipson and Smyth 2010).

    Args:
        observed: The value of the data.
        permuted: Those of the permutations, `[K]`.
    """
    return float((1 + (permuted >= observed).sum()) / (1 + len(permuted)))
