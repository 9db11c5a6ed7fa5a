"""Cells read out of an embedding with few samples for its dimension: k-means, and one covariance for all cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.special import softmax
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from inference.clusters.read_out import ReadOut, check_embedding, draw_points, soft_assign

__all__ = ["Shape", "choose_shape", "read_out_round"]

Shape = Literal["auto", "curved", "round"]

_SAMPLES_PER_PARAMETER = 10
_LARGEST_RATIO = 2.5


def choose_shape(n_samples: int, n_dimensions: int, n_cells: int) -> Literal["curved", "round"]:
    """`curved` where a full Gaussian of an over-complete mixture has ten samples for each of its parameters.

    With fewer, full covariances follow single samples and merging goes astray.

    Args:
        n_samples: Number of samples, n.
        n_dimensions: Dimension of the embedding, J.
        n_cells: Number of cells, C.

    Reference:
        Measured on the embeddings of variational autoencoders. Handwritten digits in six views (n = 1800, C = 10,
        J = 4 to 16, eight embeddings; 0.4 to 5 samples per parameter): mean ARI .76 of `read_out`, .88 of
        `read_out_round`. Circles: benchmarks/README.md.
    """
    n_parameters = n_dimensions * (n_dimensions + 3) / 2
    per_gaussian = n_samples / (_LARGEST_RATIO * n_cells)
    return "curved" if per_gaussian >= _SAMPLES_PER_PARAMETER * n_parameters else "round"


def read_out_round(embedding: np.ndarray, n_cells: int, *, n_init: int = 10, n_fit: int = 20_000, seed: int) -> ReadOut:
    r"""Read `n_cells` cells out of an embedding whose clusters are round and of similar size.

    k-means with several starts in the units of the latent space, in which the unit-normal prior of pretraining has made
    distances comparable; then `r_nc ∝ w_c N(x_n; m_c, S)` with the shares and means of the clusters and their pooled
    covariance.

    Args:
        embedding: Location of each sample in latent space, `[n, J]`, finite.
        n_cells: Number of cells, C.
        n_init: Starts of k-means.
        n_fit: The clusters are found on at most so many samples, drawn at random.
        seed: Seed of the starts and of the draw.

    Raises:
        ValueError: The embedding is empty, not a matrix, or not finite.
    """
    check_embedding(embedding)
    drawn = draw_points(embedding, n_fit, seed)
    size = min(n_cells, len(np.unique(drawn, axis=0)))
    with threadpool_limits(limits=1):
        label = KMeans(size, n_init=n_init, random_state=seed).fit_predict(drawn)
    responsibilities = soft_assign(embedding, _posterior(drawn, label), n_fit)
    return ReadOut(responsibilities, np.arange(size), n_cells, ())


def _posterior(drawn: np.ndarray, label: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Responsibilities under Gaussians with the shares and means of the clusters, and one covariance for all."""
    member = np.eye(label.max() + 1)[label]
    mass = member.sum(0)
    mean = member.T @ drawn / mass[:, None]
    residual = drawn - mean[label]
    covariance = residual.T @ residual / len(drawn)
    covariance += (1e-6 * np.trace(covariance) / len(covariance) + 1e-12) * np.eye(len(covariance))
    whiten = np.linalg.inv(np.linalg.cholesky(covariance))

    def posterior(points: np.ndarray) -> np.ndarray:
        distance = np.square((points[:, None, :] - mean) @ whiten.T).sum(-1)
        return np.asarray(softmax(np.log(mass / mass.sum()) - 0.5 * distance, axis=1))

    return posterior
