"""One Gaussian per cell: how well it explains merged components, and what comes of starting from it."""

from __future__ import annotations

import numpy as np
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

__all__ = ["classification_likelihood", "refine"]


def classification_likelihood(points: np.ndarray, cells: np.ndarray, regularisation: float) -> float:
    r"""How well one Gaussian per cell explains a clustering, in nats per sample; higher is better.

    `mean_n Σ_c R_nc log(w_c N(x_n; m_c, S_c))` with the weights, means and covariances of the cells. The log-likelihood
    of the mixture minus its entropy if R are its own responsibilities: the criterion behind ICL. Unlike the entropy
    alone, it notices when two separate groups were merged while a third was split.

    Args:
        points: Standardised embedding, `[n, J]`.
        cells: Responsibilities R of the cells, `[n, C]`; empty cells count nothing.
        regularisation: Added to the diagonal of every covariance.

    Reference:
        Biernacki, Celeux, Govaert 2000, Assessing a mixture model for clustering with the integrated completed
        likelihood, doi 10.1109/34.865189.
    """
    weights, means, covariances = _moments(points, cells[:, cells.sum(0) > 0], regularisation)
    densities = [multivariate_normal(m, s).logpdf(points) for m, s in zip(means, covariances, strict=True)]
    joint = np.log(weights) + np.stack(densities, axis=-1).reshape(len(points), -1)
    return float((cells[:, cells.sum(0) > 0] * joint).sum(1).mean())


def refine(points: np.ndarray, cells: np.ndarray, regularisation: float) -> GaussianMixture:
    """Expectation-maximisation with one full-covariance Gaussian per cell, from the cells as they are.

    Merged components follow curved groups, but a component in the wrong cell stays there. One Gaussian per cell has no
    such freedom, and fits where joint training, whose prior is a mixture of Gaussians, has made the groups so.

    Args:
        points: Standardised embedding, `[n, J]`.
        cells: Responsibilities of the cells, `[n, C]`, none empty.
        regularisation: Added to the diagonal of every covariance.

    Returns:
        The fitted mixture; component c is cell c.
    """
    weights, means, covariances = _moments(points, cells, regularisation)
    mixture = GaussianMixture(
        len(weights),
        reg_covar=regularisation,
        max_iter=200,
        weights_init=weights / weights.sum(),
        means_init=means,
        precisions_init=np.linalg.inv(covariances),
    )
    return mixture.fit(points)


def _moments(points: np.ndarray, cells: np.ndarray, regularisation: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights `[C]`, means `[C, J]` and covariances `[C, J, J]` of the cells."""
    mass = cells.sum(0)
    means = cells.T @ points / mass[:, None]
    centred = points[:, None, :] - means
    covariances = np.einsum("nc,nci,ncj->cij", cells, centred, centred, optimize=True) / mass[:, None, None]
    return mass / len(points), means, covariances + regularisation * np.eye(points.shape[1])
