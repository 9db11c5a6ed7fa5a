"""Training, validation and test samples: stratified by the known factors, with groups kept whole."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

__all__ = ["split_samples"]


def split_samples(
    n_samples: int,
    validation_fraction: float,
    seed: int,
    test_fraction: float = 0.0,
    factors: Mapping[str, np.ndarray] | None = None,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """`train`, `validation` or `test` per sample, `[n]` of str.

    Whole groups are drawn systematically from a list that is sorted by the combination of the known factors and
    shuffled within: every combination gives its share of groups. At least one group stays for training. Fractions are
    of groups, which are samples where there are none.

    Args:
        n_samples: Number of samples.
        validation_fraction: Share of the groups for validation, in [0, 1).
        seed: Seed of the shuffling.
        test_fraction: Share of the groups for the test, in [0, 1).
        factors: Known factors, integer codes `[n]` each; they choose no parameter, only the split.
        groups: Codes of the groups `[n]`; None: every sample is its own.
    """
    unit = np.arange(n_samples) if groups is None else np.unique(groups, return_inverse=True)[1]
    first = np.unique(unit, return_index=True)[1]
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(first))
    stratum = _strata(factors or {}, n_samples)[first]
    order = order[np.argsort(stratum[order], kind="stable")]
    part = np.full(len(first), "train", dtype="<U10")
    for name, fraction in (("test", test_fraction), ("validation", validation_fraction)):
        part[_evenly(order[part[order] == "train"], round(fraction * len(first)), generator)] = name
    return part[unit]


def _strata(factors: Mapping[str, np.ndarray], n_samples: int) -> np.ndarray:
    """Code of the combination of all factors, `[n]`; having no label (-1) is one more level."""
    code = np.zeros(n_samples, dtype=np.int64)
    for codes in factors.values():
        code = np.unique(code * (int(codes.max()) + 2) + codes + 1, return_inverse=True)[1]
    return code


def _evenly(order: np.ndarray, wanted: int, generator: np.random.Generator) -> np.ndarray:
    """`wanted` entries spread evenly over `order` from a random start; at least one is left."""
    wanted = min(wanted, len(order) - 1)
    mark = (np.arange(len(order) + 1) * wanted + generator.integers(len(order))) // len(order)
    return order[np.flatnonzero(np.diff(mark))]
