"""Cells read out of an embedding: an over-complete Gaussian mixture whose components are merged by overlap."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from inference.clusters.attempts import Candidate, attempt, count_occupied, mean_entropy, sum_by_cell

__all__ = ["ReadOut", "check_embedding", "default_sizes", "draw_points", "read_out"]


@dataclass(frozen=True)
class ReadOut:
    """Which component and which cell every sample belongs to.

    Attributes:
        responsibilities: Posterior of the components, `[n, K]`, rows sum to 1.
        component_cell: Cell of each component, `[K]`, in 0..C-1.
        n_cells: Number of cells, C. Cells without a component are empty.
        candidates: One record per mixture that was tried, by size and start.
    """

    responsibilities: np.ndarray
    component_cell: np.ndarray
    n_cells: int
    candidates: tuple[Candidate, ...]

    @property
    def size(self) -> int:
        """Number of components, K."""
        return self.responsibilities.shape[1]

    @property
    def cell_responsibilities(self) -> np.ndarray:
        """R_nc `[n, C]`: the responsibilities summed over the components of each cell."""
        return sum_by_cell(self.responsibilities, self.component_cell, self.n_cells)

    @property
    def entropy(self) -> float:
        """-mean_n sum_c R_nc log R_nc in nats; low where every sample has one clear cell."""
        return mean_entropy(self.cell_responsibilities)

    @property
    def n_occupied(self) -> int:
        """Number of cells with mass above `attempts.OCCUPIED_MASS`."""
        return count_occupied(self.cell_responsibilities)


def read_out(
    embedding: np.ndarray,
    n_cells: int,
    *,
    sizes: Sequence[int] | None = None,
    n_init: int = 2,
    regularisation: float = 1e-4,
    n_fit: int = 20_000,
    seed: int,
) -> ReadOut:
    """Read `n_cells` cells out of an embedding whose clusters are curved and unequal.

    The embedding is standardised; for every size and every start of expectation-maximisation a full-covariance
    Gaussian mixture is fitted and its components are merged until `n_cells` remain (`merge_components`). Among the
    mixtures with the most occupied cells the one wins whose cells are explained best by one Gaussian each
    (`classification_likelihood`: entropy alone prefers at times to merge two groups and to split a third). Last, one
    Gaussian per cell is fitted from there (`refine`), and kept if its cells are clearer, by entropy.
    Linear algebra runs on one thread: at this scale more threads are slower, and the result does not depend on how
    many there are.

    Args:
        embedding: Location of each sample in latent space, `[n, J]`, finite.
        n_cells: Number of cells, C.
        sizes: Numbers of components to try, each at least C; `default_sizes` where None. None is larger than the
            number of distinct samples.
        n_init: Starts per size, each a candidate of its own.
        regularisation: Added to the diagonal of every covariance, in units of the variance of the embedding.
        n_fit: Mixtures are fitted, merged and compared on at most so many samples, drawn at random; the winner is
            then evaluated on all.
        seed: Seed of the starts and of the draw.

    Returns:
        The winning mixture's responsibilities for all samples, and the map from components to cells.

    Raises:
        ValueError: If an argument is out of range, or the embedding is empty, not a matrix, or not finite.

    Reference:
        The choice was made by measurement. Mean accuracy on the embeddings of 24 variational autoencoders of the
        circles data: .952 as here, .943 if entropy chooses, .919 if the likelihood of the mixture does, .875 and .839
        of a full and a diagonal mixture with C components.
    """
    points = StandardScaler().fit_transform(check_embedding(embedding))
    _check_settings(n_cells, sizes, n_init, regularisation, n_fit, seed)
    drawn = draw_points(points, n_fit, seed)
    tried = _feasible(sizes or default_sizes(n_cells, *drawn.shape), drawn)
    mixtures = [_mixture(size, start, regularisation, seed) for size in tried for start in range(n_init)]
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        attempts = [attempt(drawn, n_cells, mixture) for mixture in mixtures]
        best = min(attempts, key=lambda tried: tried.rank).clearer
        responsibilities = best.mixture.predict_proba(points)
    return ReadOut(responsibilities, best.component_cell, n_cells, tuple(a.merged.candidate for a in attempts))


def default_sizes(n_cells: int, n_samples: int, n_dimensions: int) -> tuple[int, ...]:
    """1.5, 2 and 2.5 components per cell, as long as a component has 2 (J + 1) samples on average.

    Args:
        n_cells: Number of cells, C.
        n_samples: Number of samples, n.
        n_dimensions: Dimension of the embedding, J: a full covariance takes J + 1 samples at least.

    Returns:
        Distinct sizes in ascending order, at least C: (12, 16, 20) for 8 cells and enough samples.
    """
    most = max(n_cells, n_samples // (2 * (n_dimensions + 1)))
    return tuple(sorted({min(int(ratio * n_cells + 0.5), most) for ratio in (1.5, 2.0, 2.5)}))


def _mixture(size: int, start: int, regularisation: float, seed: int) -> GaussianMixture:
    """An unfitted mixture whose randomness depends on the seed, its size and the number of its start alone."""
    state = int(np.random.SeedSequence((seed, size, start)).generate_state(1)[0])
    return GaussianMixture(size, reg_covar=regularisation, random_state=state)


def _feasible(sizes: Sequence[int], points: np.ndarray) -> list[int]:
    """The distinct sizes, none larger than the number of distinct points."""
    n_distinct = len(np.unique(points, axis=0))
    return sorted({min(size, n_distinct) for size in sizes})


def draw_points(points: np.ndarray, n_fit: int, seed: int) -> np.ndarray:
    """At most `n_fit` points drawn without replacement, in their order; at least two, as scikit-learn demands."""
    if len(points) > n_fit:
        return points[np.sort(np.random.default_rng(seed).choice(len(points), n_fit, replace=False))]
    return points if len(points) > 1 else np.repeat(points, 2, axis=0)


def check_embedding(embedding: np.ndarray) -> np.ndarray:
    """The embedding in float64, or a ValueError that says what is wrong with it."""
    points = np.asarray(embedding, dtype=np.float64)
    if points.ndim != 2 or points.size == 0:
        raise ValueError(f"embedding: expected [sample, dimension] with one of each at least, got {points.shape}")
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if bad.size:
        raise ValueError(
            f"embedding: expected finite values, got NaN or infinity in {bad.size} of {len(points)} rows, first in row "
            f"{bad[0]}; the encoder has diverged: lower the learning rate or check the data's scale"
        )
    return points


def _check_settings(
    n_cells: int, sizes: Sequence[int] | None, n_init: int, regularisation: float, n_fit: int, seed: int
) -> None:
    for name, value, least in (("n_cells", n_cells, 1), ("n_init", n_init, 1), ("n_fit", n_fit, 2), ("seed", seed, 0)):
        if value < least:
            raise ValueError(f"{name}: expected at least {least}, got {value}")
    if sizes is not None and min(sizes, default=0) < n_cells:
        raise ValueError(f"sizes: expected one or more numbers of components >= n_cells = {n_cells}, got {sizes}")
    if not 0 < regularisation < np.inf:
        raise ValueError(f"regularisation: expected a positive number, got {regularisation}")
