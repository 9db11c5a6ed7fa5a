"""Other samples made of the ones that there are: with independent nodes, and drawn again with replacement."""

from __future__ import annotations

import numpy as np

from inference.checks.embedded_run import EmbeddedRun

__all__ = ["bootstrap_rows", "null_rows", "permuted", "unseen_cells"]

_LEAST_MASS = 1.0


def null_rows(run: EmbeddedRun, generator: np.random.Generator) -> np.ndarray:
    r"""Samples in which the nodes are independent, and everything else is as it was.

    Every sample gets a cell drawn from its own q(N|X); then the outcomes of each node are permuted among the samples,
    each node by itself, so that N has the product of its marginals; and a sample of the new cell c takes the place,
    drawn with probability $\propto q(N = c \mid X_n)$, which is p(embedding | c) as far as q is calibrated. Of groups
    (replicates of a specimen) the outcomes are permuted as a whole, so that samples of a group stay alike.

    Args:
        run: The run, whose cells are not empty (`unseen_cells`).
        generator: Of the draws.

    Returns:
        Which sample stands in each place, `[n]`.
    """
    nodes = np.stack(np.unravel_index(_draw_cells(run.responsibilities, generator), run.outcomes))
    cells = np.ravel_multi_index(tuple(permuted(node, run.groups, generator) for node in nodes), run.outcomes)
    rows = np.empty(run.n_samples, dtype=np.int64)
    for cell in np.unique(cells):
        places = np.flatnonzero(cells == cell)
        share = run.responsibilities[:, cell] / run.responsibilities[:, cell].sum()
        rows[places] = generator.choice(run.n_samples, len(places), p=share)
    return rows


def permuted(values: np.ndarray, groups: np.ndarray | None, generator: np.random.Generator) -> np.ndarray:
    """Values among the samples, or those of whole groups among groups, resampled to their sizes.

    Replicates of a specimen stay alike: permuted one by one they would look like many independent samples, and p-values
    would be too small.

    Args:
        values: `[n, ...]`.
        groups: Group of each sample, `[n]`; None: there are none.
        generator: Of the permutation.
    """
    if groups is None:
        return generator.permutation(values)
    members, moved = _members(groups), np.empty_like(values)
    for place, source in enumerate(generator.permutation(len(members))):
        size, found = len(members[place]), values[members[source]]
        moved[members[place]] = generator.choice(found, size, replace=size != len(found))
    return moved


def _members(units: np.ndarray) -> list[np.ndarray]:
    """Positions of the samples of each unit."""
    codes = np.unique(units, return_inverse=True)[1]
    return np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])


def _draw_cells(responsibilities: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    below = responsibilities.cumsum(1) < generator.random((len(responsibilities), 1)) * responsibilities.sum(1)[:, None]
    return below.sum(1).clip(max=responsibilities.shape[1] - 1)


def unseen_cells(run: EmbeddedRun) -> np.ndarray:
    """Cells of less than one sample that independent nodes would fill: of these nobody knows what they look like."""
    mass = run.responsibilities.sum(0)
    table = mass.reshape(run.outcomes) / mass.sum()
    product = np.ones_like(table)
    for node in range(table.ndim):
        product = product * table.sum(axis=tuple(o for o in range(table.ndim) if o != node), keepdims=True)
    return np.flatnonzero((mass < _LEAST_MASS) & (product.reshape(-1) * run.n_samples >= _LEAST_MASS / 2))


def bootstrap_rows(n_samples: int, units: np.ndarray | None, generator: np.random.Generator) -> np.ndarray:
    """As many units as there are, drawn with replacement, each with all of its samples, `[m]`.

    Args:
        n_samples: Number of samples.
        units: Codes of the unit of each sample, `[n]`; None: every sample is one.
        generator: Of the draws.
    """
    if units is None:
        return generator.integers(0, n_samples, n_samples)
    members = _members(units)
    return np.concatenate([members[unit] for unit in generator.integers(0, len(members), len(members))])
