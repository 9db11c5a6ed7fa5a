"""How many cells an embedding supports: which numbers of them come out the same from other samples and other starts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from causalpima.inference.clusters.clustering import (
    ReadOut,
    check_embedding,
    choose_shape,
    draw_points,
    read_out,
    read_out_round,
)
from causalpima.inference.clusters.matching import ari

__all__ = ["STABLE", "Embedding", "SizeRecord", "compare_sizes", "largest_size", "largest_stable"]

STABLE = 0.9
"""Adjusted Rand index from which on two read-outs are said to agree."""

_MOST_SAMPLES = 2000
_SAMPLES_PER_CELL = 4
_MIXTURE_STARTS = 2
_REGULARISATION = 1e-4


@dataclass(frozen=True)
class Embedding:
    """Locations of the same samples in the latent space of one start.

    Attributes:
        training: `[n, J]`, of the samples that clusters are read out of.
        held_out: `[h, J]`, of others that trained nothing; none where h is 0.
    """

    training: np.ndarray
    held_out: np.ndarray


@dataclass(frozen=True)
class SizeRecord:
    """What came out with one number of cells.

    Attributes:
        n_cells: The number, C.
        halves: Median adjusted Rand index, over starts and pairs of random halves of the samples, of the read-outs of
            the two halves on the samples that are in both.
        halves_lowest: The lowest of them.
        starts: Median adjusted Rand index between the read-outs of two starts; None of a single one.
        entropy: Median over starts of the mean entropy of the responsibilities, in nats.
        n_occupied: Fewest occupied cells of a start.
        held_out: Mean over starts of log p(held-out) of a mixture of C full Gaussians less that of one Gaussian, both
            fitted to the training embedding, in nats per sample; None without held-out samples.
    """

    n_cells: int
    halves: float
    halves_lowest: float
    starts: float | None
    entropy: float
    n_occupied: int
    held_out: float | None

    @property
    def agreement(self) -> float:
        """The lower one of the agreement of halves and that of starts."""
        return self.halves if self.starts is None else min(self.halves, self.starts)

    @property
    def is_stable(self) -> bool:
        """Whether read-outs agree, and no cell is empty."""
        return self.agreement >= STABLE and self.n_occupied == self.n_cells


def largest_stable(records: Sequence[SizeRecord]) -> int | None:
    """The largest number of cells whose read-outs agree; None if there is none."""
    return max((record.n_cells for record in records if record.is_stable), default=None)


def largest_size(n_samples: int) -> int:
    """The largest number of cells that halves of so many samples are read out for: four samples per cell."""
    return min(n_samples, _MOST_SAMPLES) // 2 // _SAMPLES_PER_CELL


def compare_sizes(
    embeddings: Sequence[Embedding],
    sizes: Sequence[int],
    *,
    n_pairs: int,
    seed: int,
    done: Callable[[], object] = lambda: None,
) -> list[SizeRecord]:
    """Read every number of cells out of halves of the samples and of the embeddings of several starts.

    Stability under subsampling is after Ben-Hur, Elisseeff and Guyon (2002). At most 2000 samples are drawn.

    Args:
        embeddings: One per start, of the same samples in the same order.
        sizes: Numbers of cells, each at least 2 and at most `largest_size`.
        n_pairs: Pairs of halves per start.
        seed: Seed of the draws and of the starts of read-outs.
        done: Called after every number of cells.

    Raises:
        ValueError: Numbers of cells out of range, no embedding, or embeddings that differ in their number of samples
            or are not finite.
    """
    from sklearn.exceptions import ConvergenceWarning  # late: half a second that only clustering needs

    _check(embeddings, sizes, n_pairs)
    drawn = [draw_points(each.training, _MOST_SAMPLES, seed) for each in embeddings]
    held_out = [each.held_out for each in embeddings]
    records = []
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for size in sizes:
            records.append(_compare(drawn, held_out, size, n_pairs, seed))
            done()
    return records


def _check(embeddings: Sequence[Embedding], sizes: Sequence[int], n_pairs: int) -> None:
    numbers = {len(each.training) for each in embeddings}
    if len(numbers) != 1:
        raise ValueError(f"embeddings: expected one or more of the same samples, got {sorted(numbers)} samples")
    for each in embeddings:
        check_embedding(each.training)
    most = largest_size(numbers.pop())
    if not sizes or min(sizes) < 2 or max(sizes) > most:
        raise ValueError(
            f"sizes: expected numbers of cells from 2 to {most}, an eighth of the samples, got {list(sizes)}; "
            "explore fewer cells, or more samples"
        )
    if n_pairs < 1:
        raise ValueError(f"n_pairs: expected at least 1, got {n_pairs}")


def _compare(
    drawn: Sequence[np.ndarray], held_out: Sequence[np.ndarray], size: int, n_pairs: int, seed: int
) -> SizeRecord:
    found = [_read(points, size, seed) for points in drawn]
    label = [each.cell_responsibilities.argmax(1) for each in found]
    between = [ari(a, b) for a, b in combinations(label, 2)]
    halves = [
        _halves(points, size, (seed, start, size, pair))
        for start, points in enumerate(drawn)
        for pair in range(n_pairs)
    ]
    gains = [_gain(a, b.astype(np.float64), size, seed) for a, b in zip(drawn, held_out, strict=True) if len(b)]
    return SizeRecord(
        n_cells=size,
        halves=float(np.median(halves)),
        halves_lowest=min(halves),
        starts=float(np.median(between)) if between else None,
        entropy=float(np.median([each.entropy for each in found])),
        n_occupied=min(each.n_occupied for each in found),
        held_out=float(np.mean(gains)) if gains else None,
    )


def _read(points: np.ndarray, size: int, seed: int) -> ReadOut:
    if choose_shape(len(points), points.shape[1], size) == "round":
        return read_out_round(points, size, seed=seed)
    return read_out(points, size, n_init=1, seed=seed)


def _halves(points: np.ndarray, size: int, key: Sequence[int]) -> float:
    """Agreement of the read-outs of two random halves on the samples in both."""
    n, generator = len(points), np.random.default_rng(key)
    chosen = [np.sort(generator.choice(n, n // 2, replace=False)) for _ in range(2)]
    labels = []
    for rows in chosen:
        label = np.full(n, -1)
        label[rows] = _read(points[rows], size, int(generator.integers(2**31))).cell_responsibilities.argmax(1)
        labels.append(label)
    both = np.intersect1d(chosen[0], chosen[1])
    return ari(labels[0][both], labels[1][both])


def _gain(training: np.ndarray, held_out: np.ndarray, size: int, seed: int) -> float:
    """Held-out log-likelihood of a mixture less that of one Gaussian; no matter which units the latent space has."""
    from sklearn.mixture import GaussianMixture

    loc, scale = training.mean(0), training.std(0) + 1e-12
    several, one = (
        GaussianMixture(k, reg_covar=_REGULARISATION, n_init=_MIXTURE_STARTS, random_state=seed).fit(
            (training - loc) / scale
        )
        for k in (size, 1)
    )
    points = (held_out - loc) / scale
    return float(several.score(points) - one.score(points))
