"""Limits of a rate by the number of times that something happened."""

from __future__ import annotations

from scipy.stats import beta

__all__ = ["one_sided_upper"]


def one_sided_upper(number: int, total: int, confidence: float = 0.95) -> float:
    r"""Upper limit of a probability (Clopper and Pearson 1934): $\sum_{k \le x} \binom{n}{k} p^k (1-p)^{n-k} = 1 - c$.

    Args:
        number: How often it happened, x.
        total: Of how many times, n.
        confidence: c.
    """
    return 1.0 if number == total else float(beta.ppf(confidence, number + 1, total - number))
