"""Whether outcomes that were handed out at random could explain as much: a permutation test of R²."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from inference.design.outcome_means import Reader

__all__ = ["N_PERMUTATIONS", "Permutation", "permutation_test"]

N_PERMUTATIONS = 999
_MOST_VALUES = 10**6
_FEWEST_ELEMENTS = 16
_AT_ONCE = 64
_TIE = 1e-9


class Permutation(NamedTuple):
    """A permutation test.

    Attributes:
        p_value: (1 + permutations that explain as much) / (1 + permutations).
        n_permutations: How many were drawn.
        n_elements: On how many elements of the modality R² was compared, spread evenly over those measured.
    """

    p_value: float
    n_permutations: int
    n_elements: int


class _Sums(NamedTuple):
    """What is exchanged: groups as wholes, or samples within their groups.

    Attributes:
        total: Sum of the values, `[U, E]`.
        present: Measured samples, `[U, E]`.
        codes: Outcome, `[U]`.
        blocks: Within which outcomes are exchanged, `[U]`.
    """

    total: np.ndarray
    present: np.ndarray
    codes: np.ndarray
    blocks: np.ndarray


def permutation_test(
    read: Reader, codes: np.ndarray, units: np.ndarray, n_outcomes: int, generator: np.random.Generator
) -> Permutation:
    """Compare R² with that of outcomes that were handed out anew.

    Groups whose samples have one outcome each exchange it as wholes; where groups have samples of several outcomes,
    samples exchange them within their groups. This is the distribution under randomisation if the design drew
    outcomes like that.

    Args:
        read: Values of samples.
        codes: Outcome of each sample, `[n]`.
        units: Group of each sample, `[n]`.
        n_outcomes: Number of outcomes.
        generator: Source of the permutations.
    """
    sums = _sums(read, codes, units)
    member = np.eye(n_outcomes)
    observed = _between(sums, member[sums.codes].T[None])[0]
    as_much = 0
    for start in range(0, N_PERMUTATIONS, _AT_ONCE):
        drawn = [_exchanged(sums, generator) for _ in range(min(_AT_ONCE, N_PERMUTATIONS - start))]
        found = _between(sums, member[np.stack(drawn)].swapaxes(1, 2))
        as_much += int((found >= observed * (1 - _TIE)).sum())
    return Permutation((1 + as_much) / (1 + N_PERMUTATIONS), N_PERMUTATIONS, sums.total.shape[1])


def _sums(read: Reader, codes: np.ndarray, units: np.ndarray) -> _Sums:
    """Centred values of some elements, summed over what is exchanged."""
    pairs = np.unique(np.stack([units, codes], axis=1), axis=0)
    are_whole = len(pairs) == len(np.unique(units))
    own = np.unique(units, return_inverse=True)[1].reshape(-1) if are_whole else np.arange(len(codes))
    elements = _elements(read, len(codes), own.max() + 1)
    values, measured = _read_all(read, len(codes), elements)
    count = measured.sum(0)
    values = np.where(measured, values - values.sum(0, where=measured) / np.maximum(count, 1), 0.0)
    n_units = own.max() + 1
    total, present = (np.zeros((n_units, len(elements))) for _ in range(2))
    np.add.at(total, own, values)
    np.add.at(present, own, measured)
    first = np.unique(own, return_index=True)[1]
    blocks = np.zeros(n_units, dtype=int) if are_whole else units
    return _Sums(total, present, codes[first], blocks)


def _elements(read: Reader, n_samples: int, n_units: int) -> np.ndarray:
    """Elements that some sample has, evenly spread where they are many."""
    parts = [read(rows)[1].any(0) for rows in _blocks(n_samples)]
    there, most = np.flatnonzero(np.any(parts, axis=0)), max(_FEWEST_ELEMENTS, _MOST_VALUES // n_units)
    return there if len(there) <= most else there[np.linspace(0, len(there) - 1, most).round().astype(int)]


def _read_all(read: Reader, n_samples: int, elements: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    parts = [tuple(part[:, elements] for part in read(rows)) for rows in _blocks(n_samples)]
    values, measured = (np.concatenate(part) for part in zip(*parts, strict=True))
    return values, measured


def _blocks(n_samples: int) -> Iterator[np.ndarray]:
    return (np.arange(start, min(start + _AT_ONCE, n_samples)) for start in range(0, n_samples, _AT_ONCE))


def _exchanged(sums: _Sums, generator: np.random.Generator) -> np.ndarray:
    """Codes in a random order within each block."""
    order = np.lexsort((generator.random(len(sums.codes)), sums.blocks))
    codes = np.empty_like(sums.codes)
    codes[np.argsort(sums.blocks, kind="stable")] = sums.codes[order]
    return codes


def _between(sums: _Sums, member: np.ndarray) -> np.ndarray:
    """Sum of squares between outcomes over all elements, `[T]`: of one and the same total, it orders as R² does.

    Args:
        sums: Of centred values: their totals are 0.
        member: `[T, outcome, U]` of 0 and 1.
    """
    total, count = member @ sums.total, member @ sums.present
    found: np.ndarray = (np.square(total) / np.where(count > 0, count, 1.0)).sum((1, 2))
    return found
