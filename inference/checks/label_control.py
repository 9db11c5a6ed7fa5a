"""Labels that name the clusters, permuted: how well would labels agree that have nothing to do with the samples?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inference.checks.resampling import permuted
from inference.labelling.labels import UNKNOWN, assign_cells, labelled_mass
from inference.results.rates import permutation_p_value

__all__ = ["LabelAgreement", "permuted_labels"]

_N_PERMUTATIONS = 200


@dataclass(frozen=True)
class LabelAgreement:
    """Share of labels that clusters agree with, once they are named by these labels.

    Attributes:
        share: With the labels as they are.
        permuted: With labels permuted among the labelled samples, `[200]`.
        n_labelled: Number of labelled samples.
    """

    share: float
    permuted: np.ndarray
    n_labelled: int

    @property
    def p_value(self) -> float:
        """How often permuted labels agree as well."""
        return permutation_p_value(self.share, self.permuted)


def permuted_labels(
    responsibilities: np.ndarray,
    codes: np.ndarray,
    outcomes: Sequence[int],
    seed: int,
    groups: np.ndarray | None = None,
) -> LabelAgreement:
    """Name the clusters by the labels, and by the same labels permuted; the number of labels of each kind is kept.

    Args:
        responsibilities: q(N|X), `[n, C]`.
        codes: Outcome of each node by the labels, `[n, L]`; `UNKNOWN` where there is none.
        outcomes: Outcomes per node.
        seed: Of the permutations.
        groups: Group of each sample, `[n]`, whose labels are permuted as a whole; None: there are none.
    """
    rows = (codes != UNKNOWN).any(axis=1)
    r, known, generator = responsibilities[rows], codes[rows], np.random.default_rng((seed, 4))
    units = None if groups is None else groups[rows]
    shares = [_agreement(r, permuted(known, units, generator), outcomes) for _ in range(_N_PERMUTATIONS)]
    return LabelAgreement(_agreement(r, known, outcomes), np.array(shares), int(rows.sum()))


def _agreement(r: np.ndarray, codes: np.ndarray, outcomes: Sequence[int]) -> float:
    permutation = assign_cells(labelled_mass(r, codes, outcomes))
    named = np.stack(np.unravel_index(permutation[r.argmax(1)], tuple(outcomes)), axis=1)
    told = codes != UNKNOWN
    return float((named == codes)[told].mean())
