"""Cells read out of an embedding: an over-complete Gaussian mixture whose components are merged by overlap."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from inference.clusters.attempts import Candidate, attempt, sum_by_cell
from inference.clusters.occupancy import count_occupied, mean_entropy

__all__ = ["ReadOut", "check_embedding", "default_sizes", "draw_points", "read_out", "row_blocks", "soft_assign"]

_ROWS_AT_ONCE = 2**14


@dataclass(frozen=True)
class ReadOut:
    """Which component and which cell every sample belongs to.

    Attributes:
        responsibilities: Posterior of the components, `[n, K]`, rows sum to 1; float32 of more samples than the mixture
            was fitted to, else float64.
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
        """Number of occupied cells."""
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
            then evaluated on all, block by block.
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
    check_embedding(embedding)
    _check_settings(n_cells, sizes, n_init, regularisation, n_fit, seed)
    scaler = _scaler(embedding)
    drawn = scaler.transform(draw_points(embedding, n_fit, seed))
    tried = _feasible(sizes or default_sizes(n_cells, *drawn.shape), drawn)
    mixtures = [_mixture(size, start, regularisation, seed) for size in tried for start in range(n_init)]
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        attempts = [attempt(drawn, n_cells, mixture) for mixture in mixtures]
        best = min(attempts, key=lambda tried: tried.rank).clearer
        responsibilities = soft_assign(
            embedding, lambda points: best.mixture.predict_proba(scaler.transform(points)), n_fit
        )
    return ReadOut(responsibilities, best.component_cell, n_cells, tuple(a.merged.candidate for a in attempts))


def row_blocks(n: int) -> Iterator[slice]:
    """Slices over n rows, small enough for sums in float64 over what is in them."""
    return (slice(start, min(start + _ROWS_AT_ONCE, n)) for start in range(0, n, _ROWS_AT_ONCE))


def soft_assign(embedding: np.ndarray, posterior: Callable[[np.ndarray], np.ndarray], n_fit: int) -> np.ndarray:
    """The posterior of every sample, block by block; in single precision for more than `n_fit` samples.

    Args:
        embedding: `[n, J]`.
        posterior: From points in float64, `[b, J]`, to `[b, K]`.
        n_fit: See above.
    """
    n, precision = len(embedding), np.float32 if len(embedding) > n_fit else np.float64
    parts = (posterior(embedding[rows].astype(np.float64)) for rows in row_blocks(n))
    first = next(parts)
    found = np.empty((n, first.shape[1]), dtype=precision)
    for rows, part in zip(row_blocks(n), chain((first,), parts), strict=True):
        found[rows] = part
    return found


def _scaler(embedding: np.ndarray) -> StandardScaler:
    """Mean and standard deviation of every dimension, block by block."""
    scaler = StandardScaler()
    for rows in row_blocks(len(embedding)):
        scaler.partial_fit(embedding[rows].astype(np.float64))
    return scaler


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
    """At most `n_fit` points drawn without replacement, in their order, float64; two at least, as sklearn demands."""
    chosen = points
    if len(points) > n_fit:
        chosen = points[np.sort(np.random.default_rng(seed).choice(len(points), n_fit, replace=False))]
    return (chosen if len(chosen) > 1 else np.repeat(chosen, 2, axis=0)).astype(np.float64)


def check_embedding(embedding: np.ndarray) -> None:
    """Refuse an embedding that nothing can be read out of.

    Raises:
        ValueError: It is empty, not a matrix, or not finite.
    """
    if embedding.ndim != 2 or embedding.size == 0:
        raise ValueError(f"embedding: expected [sample, dimension] with one of each at least, got {embedding.shape}")
    bad = np.flatnonzero(~np.isfinite(embedding).all(axis=1))
    if bad.size:
        raise ValueError(
            f"embedding: expected finite values, got NaN or infinity in {bad.size} of {len(embedding)} rows, first in "
            f"row {bad[0]}; the encoder has diverged: lower the learning rate or check the data's scale"
        )


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
