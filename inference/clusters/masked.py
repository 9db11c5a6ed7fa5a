"""Cells read out of one embedding per modality, where each modality sees some of the nodes only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import entr
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from causalpima.inference.clusters.clustering import (
    Candidate,
    ReadOut,
    check_embedding,
    count_occupied,
    mean_entropy,
    row_blocks,
)

__all__ = [
    "Fit",
    "MaskedMixture",
    "Parameters",
    "Starts",
    "View",
    "masked_em",
]


# Starts of expectation-maximisation under a mask: groups of every modality, and which level each of them is.


_OFF_WEIGHT = 0.15


class Starts:
    """Groups by k-means in each modality, and bijections of its groups and its levels drawn at random.

    Args:
        embeddings: Standardised, per modality `[n, J]`.
        present: Per modality, which samples have it, bool `[n]`.
        levels: Per modality, level of every cell, `[C]`.

    Reference:
        Groups of over-complete mixtures that are merged (`read_out`) change nothing but the time: on 16 made-up data
        sets of curved, overlapping levels the likelihood that is reached is the same to 3e-4 nats per sample, and the
        whole of expectation-maximisation takes 1.3 to 1.8 times the processor time.
    """

    def __init__(
        self, embeddings: Sequence[np.ndarray], present: Sequence[np.ndarray], levels: Sequence[np.ndarray]
    ) -> None:
        self.embeddings, self.present, self.levels = embeddings, present, levels

    def draw(self, n_starts: int, seed: int) -> Iterator[list[np.ndarray]]:
        """Weights of the levels, per modality `[n, levels]`: of the group's own level 0.85, zero where absent."""
        for start in range(n_starts):
            rng = np.random.default_rng((seed, start))
            yield [self._weights(row, rng) for row in range(len(self.levels))]

    def _weights(self, row: int, rng: np.random.Generator) -> np.ndarray:
        n_levels = int(self.levels[row].max()) + 1
        present = self.present[row]
        group = _groups(self.embeddings[row][present], n_levels, rng)
        weights = np.zeros((len(present), n_levels))
        weights[present] = _soft(rng.permutation(n_levels)[group], n_levels)
        return weights


def _groups(points: np.ndarray, n_groups: int, rng: np.random.Generator) -> np.ndarray:
    from sklearn.cluster import KMeans  # late: half a second that only clustering needs

    size = min(n_groups, len(np.unique(points, axis=0)))
    if size < 2:
        return np.zeros(len(points), dtype=int)
    return KMeans(size, n_init=1, random_state=int(rng.integers(2**31))).fit_predict(points)


def _soft(level: np.ndarray, n_levels: int) -> np.ndarray:
    off = _OFF_WEIGHT / max(n_levels - 1, 1)
    return np.where(np.eye(n_levels, dtype=bool)[level], 1 - off * (n_levels - 1), off)


_LEAST = 1e-300


@dataclass(frozen=True)
class View:
    """What one modality tells.

    Attributes:
        embedding: Location of each sample in the block of the modality, `[n, J]`; finite filler where it is absent.
        level: Level of the modality in every cell, the joint outcome of the nodes that it sees, `[C]`.
        present: Which samples have the modality, bool `[n]`.
    """

    embedding: np.ndarray
    level: np.ndarray
    present: np.ndarray

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return int(self.level.max()) + 1


class Parameters(NamedTuple):
    """Of p(e) = Σ_c π_c ∏_m N(e_m; μ_{m, l_m(c)}, Σ_{m, l_m(c)}).

    Attributes:
        log_share: log π, `[C]`.
        loc: Per modality μ, `[levels, J]`, in units of the standard deviation.
        covariance: Per modality Σ, `[levels, J, J]`.
    """

    log_share: np.ndarray
    loc: Sequence[np.ndarray]
    covariance: Sequence[np.ndarray]


class Fit(NamedTuple):
    """Where expectation-maximisation stands.

    Attributes:
        parameters: The parameters.
        objective: Log-likelihood plus log-prior of the parameters before the last step, per sample.
        converged: Whether the last step gained less than the tolerance.
    """

    parameters: Parameters
    objective: float
    converged: bool


def masked_em(
    views: Sequence[View],
    *,
    n_starts: int = 25,
    n_first: int = 25,
    n_best: int = 3,
    n_most: int = 1000,
    tolerance: float = 1e-6,
    regularisation: float = 1e-4,
    n_fit: int = 20_000,
    seed: int,
) -> ReadOut:
    r"""Read cells out of one embedding per modality by expectation-maximisation on the mask's own mixture.

    $$p(e) = \sum_c \pi_c \prod_{m\ \text{present}} N(e_m;\ \mu_{m, l_m(c)}, \Sigma_{m, l_m(c)})$$

    with free shares π. What a sample lacks is marginalised. Many starts (`Starts`) run for some iterations, the best of
    them until nothing is gained, and the likeliest one is kept. The modalities agree on a cell through the nodes that
    several of them see: this is what gives nodes their meaning.

    Args:
        views: One per modality, of the same samples and cells.
        n_starts: Number of starts.
        n_first: Iterations of each start.
        n_best: Starts that go on.
        n_most: Most iterations of these.
        tolerance: Gain per sample and iteration, in nats, at which a start has converged.
        regularisation: Share of a level's mean mass that counts as samples of unit variance in every covariance, on
            the standardised embedding.
        n_fit: Parameters are fitted on at most so many samples, drawn at random.
        seed: Seed of the starts and of the draw.

    Returns:
        Responsibilities of the cells for all samples; every cell is its own component. The candidates are the starts
        that went on.

    Raises:
        ValueError: An embedding is empty, no matrix, or not finite.
    """
    for view in views:
        check_embedding(view.embedding)
    drawn = _drawn_rows(len(views[0].embedding), n_fit, seed)
    scalers = [_Scaler.of(view) for view in views]
    mixture = MaskedMixture(_chosen(views, scalers, drawn), regularisation)
    with threadpool_limits(limits=1):
        starts = Starts([view.embedding for view in mixture.views], [v.present for v in mixture.views], mixture.levels)
        first = [mixture.run(mixture.begin(start), n_first, tolerance) for start in starts.draw(n_starts, seed)]
        first.sort(key=lambda fit: -fit.objective)
        last = [mixture.run(fit.parameters, n_most, tolerance) for fit in first[:n_best]]
        best = max(last, key=lambda fit: fit.objective)
        found = _assign(views, scalers, mixture, best.parameters)
    return ReadOut(found, np.arange(mixture.n_cells), mixture.n_cells, tuple(mixture.judge(fit) for fit in last))


def _drawn_rows(n: int, n_fit: int, seed: int) -> np.ndarray:
    if n <= n_fit:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, n_fit, replace=False))


class _Scaler(NamedTuple):
    """Mean and standard deviation of an embedding over the samples that have the modality."""

    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, view: View) -> _Scaler:
        points = view.embedding[view.present].astype(np.float64)
        deviation = points.std(0) if len(points) else np.ones(view.embedding.shape[1])
        mean = points.mean(0) if len(points) else np.zeros(view.embedding.shape[1])
        return cls(mean, np.where(deviation > 0, deviation, 1.0))

    def apply(self, points: np.ndarray) -> np.ndarray:
        scaled: np.ndarray = (points.astype(np.float64) - self.mean) / self.deviation
        return scaled


def _chosen(views: Sequence[View], scalers: Sequence[_Scaler], rows: np.ndarray | slice) -> list[View]:
    """Standardised, at these rows."""
    return [
        View(scaler.apply(view.embedding[rows]), view.level, view.present[rows])
        for view, scaler in zip(views, scalers, strict=True)
    ]


def _assign(
    views: Sequence[View], scalers: Sequence[_Scaler], mixture: MaskedMixture, parameters: Parameters
) -> np.ndarray:
    """Responsibilities of all samples, block by block, `[n, C]`."""
    weights = mixture.weights(parameters)
    blocks = (_chosen(views, scalers, rows) for rows in row_blocks(len(views[0].embedding)))
    return np.concatenate([_expectation(_all_features(block), weights)[0] for block in blocks])


class MaskedMixture:
    """The mixture of `masked_em` on standardised views, and the steps of expectation-maximisation on it.

    A Gaussian log-density is linear in the features `[1, e, e eᵀ]`, so that an expectation step is one product of the
    features of all modalities with the weights of all cells, and a maximisation step is one product of responsibilities
    with features. The features of absent modalities are zero: they add nothing to either.

    Args:
        views: One per modality.
        regularisation: See `masked_em`.
    """

    def __init__(self, views: Sequence[View], regularisation: float) -> None:
        self.views, self.regularisation = views, regularisation
        self.levels = [view.level for view in views]
        self.n_cells = len(views[0].level)
        self.features = _all_features(views)
        self._members = [np.eye(view.n_levels)[view.level] for view in views]

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.features)

    def begin(self, level_weights: Sequence[np.ndarray]) -> Parameters:
        """From weights of the levels of every modality, `[n, levels]` each, with equal shares of the cells."""
        sums = [weights.T @ self._of_view(row) for row, weights in enumerate(level_weights)]
        return self._maximise(np.full(self.n_cells, -math.log(self.n_cells)), sums)

    def run(self, parameters: Parameters, n_steps: int, tolerance: float) -> Fit:
        """Iterate until nothing is gained, `n_steps` times at most."""
        previous, converged = -math.inf, False
        for _ in range(n_steps):
            responsibilities, log_likelihood = self.expectation(parameters)
            objective = self._objective(parameters, log_likelihood)
            converged = objective - previous < tolerance
            if converged:
                break
            parameters, previous = self.step(responsibilities), objective
        return Fit(parameters, objective, converged)

    def expectation(self, parameters: Parameters) -> tuple[np.ndarray, np.ndarray]:
        """Responsibilities of the cells `[n, C]`, and log p(e) `[n]`."""
        return _expectation(self.features, self.weights(parameters))

    def objective(self, parameters: Parameters) -> float:
        """Log-likelihood plus log-prior, per sample: what steps never lower."""
        return self._objective(parameters, self.expectation(parameters)[1])

    def _objective(self, parameters: Parameters, log_likelihood: np.ndarray) -> float:
        return float(log_likelihood.mean()) + self._log_prior(parameters) / self.n_samples

    def step(self, responsibilities: np.ndarray) -> Parameters:
        """The parameters that maximise the objective's expectation under these responsibilities `[n, C]`."""
        sums = responsibilities.T @ self.features
        mass = np.maximum(responsibilities.sum(0), _LEAST)
        of_levels = [member.T @ part for member, part in zip(self._members, self._split(sums), strict=True)]
        return self._maximise(np.log(mass / mass.sum()), of_levels)

    def _split(self, columns: np.ndarray) -> list[np.ndarray]:
        """The columns of every modality."""
        widths = [_n_features(view.embedding.shape[1]) for view in self.views]
        return np.split(columns, np.cumsum(widths)[:-1], axis=1)

    def _of_view(self, row: int) -> np.ndarray:
        return self._split(self.features)[row]

    def _maximise(self, log_share: np.ndarray, sums: Sequence[np.ndarray]) -> Parameters:
        moments = [self._moments(part, view.embedding.shape[1]) for part, view in zip(sums, self.views, strict=True)]
        return Parameters(log_share, [loc for loc, _ in moments], [covariance for _, covariance in moments])

    def _moments(self, sums: np.ndarray, n_dims: int) -> tuple[np.ndarray, np.ndarray]:
        """Means and covariances of levels from sums of features, with `pseudo_count` samples of unit variance."""
        count = np.maximum(sums[:, 0], _LEAST)
        loc = sums[:, 1 : n_dims + 1] / count[:, None]
        upper, second = np.triu_indices(n_dims), np.empty((len(sums), n_dims, n_dims))
        second[:, upper[0], upper[1]] = second[:, upper[1], upper[0]] = sums[:, n_dims + 1 :]
        scatter = second - count[:, None, None] * loc[:, :, None] * loc[:, None, :]
        pseudo = self._pseudo_count(len(sums))
        return loc, (scatter + pseudo * np.eye(n_dims)) / (count + pseudo)[:, None, None]

    def _pseudo_count(self, n_levels: int) -> float:
        return self.regularisation * self.n_samples / n_levels

    def _log_prior(self, parameters: Parameters) -> float:
        """`Σ_m Σ_l -κ/2 (log det Σ + tr Σ⁻¹)`: what the pseudo-samples say of the covariances."""
        total = 0.0
        for covariance in parameters.covariance:
            trace = np.trace(np.linalg.inv(covariance), axis1=1, axis2=2)
            terms = np.linalg.slogdet(covariance)[1] + trace
            total -= 0.5 * self._pseudo_count(len(covariance)) * float(terms.sum())
        return total

    def weights(self, parameters: Parameters) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of the features in the log-density of every cell `[F, C]`, and log π."""
        of_levels = [_coefficients(*pair) for pair in zip(parameters.loc, parameters.covariance, strict=True)]
        cells = [part[:, level] for part, level in zip(of_levels, self.levels, strict=True)]
        return np.concatenate(cells), parameters.log_share

    def judge(self, fit: Fit) -> Candidate:
        """The record of a start."""
        cells, log_likelihood = self.expectation(fit.parameters)
        share = cells.mean(0)
        classified = float(log_likelihood.mean()) - mean_entropy(cells)
        return Candidate(
            size=self.n_cells,
            entropy=mean_entropy(cells),
            n_occupied=count_occupied(cells),
            lower_bound=fit.objective,
            converged=fit.converged,
            classification_likelihood=classified + float(entr(share).sum()),
        )


def _n_features(n_dims: int) -> int:
    return 1 + n_dims + n_dims * (n_dims + 1) // 2


def _all_features(views: Sequence[View]) -> np.ndarray:
    """`[1, e, e eᵀ]` of all modalities side by side, zero where one is absent, `[n, F]`."""
    return np.concatenate([_features(view.embedding, view.present) for view in views], axis=1)


def _features(points: np.ndarray, present: np.ndarray) -> np.ndarray:
    upper = np.triu_indices(points.shape[1])
    columns = [np.ones((len(points), 1)), points, points[:, upper[0]] * points[:, upper[1]]]
    return np.where(present[:, None], np.concatenate(columns, axis=1), 0.0)


def _coefficients(loc: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Of the features in log N(e; loc, covariance), `[F_m, levels]`."""
    n_dims = loc.shape[1]
    precision = np.linalg.inv(covariance)
    slope = (precision @ loc[:, :, None])[:, :, 0]
    constant = -0.5 * ((slope * loc).sum(1) + np.linalg.slogdet(covariance)[1] + n_dims * math.log(2 * math.pi))
    upper = np.triu_indices(n_dims)
    twice = np.where(upper[0] == upper[1], 0.5, 1.0)
    return np.concatenate([constant[:, None], slope, -twice * precision[:, upper[0], upper[1]]], axis=1).T


def _expectation(features: np.ndarray, weights: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Responsibilities `[n, C]` and log p(e) `[n]`."""
    logits = features @ weights[0]
    logits += weights[1]
    most = logits.max(1, keepdims=True)
    np.subtract(logits, most, out=logits)
    np.exp(logits, out=logits)
    total = logits.sum(1, keepdims=True)
    logits /= total
    return logits, (most + np.log(total))[:, 0]
