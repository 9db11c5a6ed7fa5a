r"""How well a modality is predicted from the others, on samples that the fit was not trained on.

$R^2 = 1 - \sum (x - \hat x)^2 / \sum (x - \bar x)^2$ over the measured elements of held-out samples, in the units of
the data: x̂ is the predictive mean given the other modalities, x̄ the mean over the training samples, element by
element. The baseline knows no more than the cluster: the training means of the cells, weighted by q(N | the others).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr

from causalpima.inference.analyses.node_scores import Effort, Truth
from causalpima.inference.analyses.predictive_moments import (
    Noise,
    all_parts,
    count_present,
    draw,
    mixture_moments,
    responsibilities,
)
from causalpima.inference.analyses.samples import RunSamples, fit_to_run
from causalpima.inference.analyses.scores import Found, Known, scores_of
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.findings.explained_variance import CellMoments, WeightedValues, cell_moments
from causalpima.inference.training.fitted_run import FittedRun
from causalpima.inference.training.state import seed_generators, surroundings
from causalpima.models.batch import Batch

__all__ = [
    "CrossModal",
    "cross_modal",
    "explained",
    "found_in",
    "known_of",
    "score_run",
]


_ROWS_AT_ONCE = 128


@dataclass(frozen=True)
class CrossModal:
    """Prediction of one modality from the others.

    Attributes:
        r2: Of the predictive mean.
        r2_cluster_mean: Of the training means of the clusters.
        standard_error: Of `r2`, over samples.
        n_samples: Held-out samples that have the modality and another one.
    """

    r2: float
    r2_cluster_mean: float
    standard_error: float
    n_samples: int


def cross_modal(
    fitted: FittedRun,
    data: MultimodalData,
    split: np.ndarray,
    known: np.ndarray,
    draws: int = 50,
    seed: int = 0,
    most_samples: int = 1024,
) -> dict[str, CrossModal]:
    """Score every modality that held-out samples have beside another one.

    Args:
        fitted: Model and guide.
        data: All samples of the run.
        split: `train`, `validation` or `test` per sample.
        known: q(N|X) of all samples given all their modalities, `[n, C]`.
        draws: Draws of Z per sample.
        seed: Seed of the draws.
        most_samples: At most so many held-out samples, evenly spread.

    Returns:
        By modality; categories, which have no mean, and modalities without such samples are left out.
    """
    samples = fit_to_run(data, fitted)
    kept = _held_out(split, most_samples)
    found = {}
    with surroundings(fitted.device), torch.no_grad():
        seed_generators(seed, fitted.device)
        noise = Noise.make(draws, fitted.model)
        for name in _with_mean(fitted):
            rows = list(_predicted(fitted, samples, name, kept, noise))
            if rows:
                clusters = _training_moments(fitted, samples, name, split, known)
                found[name] = _score(rows, clusters)
    return found


def explained(squared_error: np.ndarray, squared_spread: np.ndarray) -> tuple[float, float]:
    """1 - Σ error / Σ spread over samples, and its standard error (ratio of means, delta method).

    Args:
        squared_error: Squared errors of each sample, summed over its elements, `[n]`.
        squared_spread: Squared distances from the mean, `[n]`.
    """
    ratio = squared_error.sum() / squared_spread.sum()
    residual = squared_error - ratio * squared_spread
    n = len(residual)
    deviation = np.sqrt(n / max(n - 1, 1) * np.square(residual).sum()) / squared_spread.sum()
    return float(1 - ratio), float(deviation)


_Predicted = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _with_mean(fitted: FittedRun) -> list[str]:
    modalities = fitted.config.modality
    return [name for name in fitted.modalities if modalities[name].decoder.likelihood != "categorical"]


def _held_out(split: np.ndarray, most: int) -> np.ndarray:
    """Which samples are scored: of the test where there is one, else of the validation."""
    part = "test" if (split == "test").any() else "validation"
    index = np.flatnonzero(split == part)
    kept = np.zeros(len(split), dtype=bool)
    kept[index[np.unique(np.linspace(0, len(index) - 1, min(most, len(index))).round().astype(int))]] = True
    return kept


def _batches(fitted: FittedRun, samples: RunSamples) -> Iterator[tuple[slice, Batch]]:
    return samples.batches(_ROWS_AT_ONCE, fitted.model.mixture.component_loc)


def _predicted(
    fitted: FittedRun, samples: RunSamples, name: str, kept: np.ndarray, noise: Noise
) -> Iterator[_Predicted]:
    """Truth, whether it was measured, prediction `[b, E]`, and q(N | the others) `[b, C]`."""
    standardisation = fitted.modalities[name].standardisation
    for rows, batch in _batches(fitted, samples):
        wanted = torch.from_numpy(kept[rows]).to(batch.index.device) & batch.has(name) & (count_present(batch) > 1)
        if not bool(wanted.any()):
            continue
        chosen = batch.at(torch.nonzero(wanted).squeeze(-1))
        others = chosen.without(name)
        drawn = draw(fitted, others, noise)
        mean, _ = mixture_moments(all_parts(fitted.model, name, drawn, others.covariates), standardisation)
        truth = standardisation.invert(chosen.values[name].double())
        yield (
            _flat(truth),
            _flat(chosen.measured(name)),
            _flat(mean),
            responsibilities(fitted, others, drawn).cpu().numpy(),
        )


def _training_moments(
    fitted: FittedRun, samples: RunSamples, name: str, split: np.ndarray, known: np.ndarray
) -> CellMoments:
    standardisation = fitted.modalities[name].standardisation

    def parts() -> Iterator[WeightedValues]:
        for rows, batch in _batches(fitted, samples):
            values = _flat(standardisation.invert(batch.values[name].double()))
            measured = _flat(batch.measured(name)) * (split[rows] == "train")[:, None]
            yield WeightedValues(known[rows], values, measured)

    return cell_moments(parts())


def _score(rows: list[_Predicted], clusters: CellMoments) -> CrossModal:
    truth, measured, mean, r = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    overall = clusters.total.sum(0) / np.maximum(clusters.count.sum(0), np.finfo(float).tiny)
    spread = _squares(truth, overall, measured)
    r2, error = explained(_squares(truth, mean, measured), spread)
    of_clusters, _ = explained(_squares(truth, r @ clusters.means(), measured), spread)
    return CrossModal(r2, of_clusters, error, len(truth))


def _squares(truth: np.ndarray, other: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Σ (x - other)² over the measured elements of each sample, `[b]`."""
    return np.where(measured > 0, np.square(truth - other), 0.0).sum(1)


def _flat(value: torch.Tensor) -> np.ndarray:
    flat: np.ndarray = value.reshape(len(value), -1).double().cpu().numpy()
    return flat


# The scores of a finished run, from its folder and its samples.


def found_in(
    posterior: xr.DataTree, groups: np.ndarray | None = None, labelling: Mapping[str, Any] | None = None
) -> Found:
    """What a run found, from its `posterior.nc`.

    Args:
        posterior: As `read_posterior` reads it.
        groups: Codes of the groups of the samples, where the file is of an older version and does not hold them.
        labelling: Where the meaning of the cells comes from, as its summary has it.
    """
    variational, constant = posterior["variational"].dataset, posterior["constant_data"].dataset
    split = constant["split_level"].to_numpy().astype(str)[constant["split"].to_numpy()]
    log_joint = variational["log_joint"]
    return Found(
        variational["responsibilities"].to_numpy(),
        tuple(map(str, variational["node_from"].to_numpy())),
        np.exp(log_joint.to_numpy().astype(np.float64)),
        None if bool(variational["edge_strength"].isnull().all()) else variational["adjacency"].to_numpy(),
        split,
        constant["group"].to_numpy() if "group" in constant else groups,
        constant["labelled"].to_numpy().astype(bool) if "labelled" in constant else None,
        constant["environment"].to_numpy() if "environment" in constant else None,
        tuple(tuple(map(str, variational[dim].to_numpy())) for dim in log_joint.dims),
        labelling,
    )


def known_of(data: MultimodalData | None) -> Known | None:
    """What came with the samples; None without factors."""
    if data is None or not data.factors:
        return None
    truth = Truth(data.true_joint, data.true_adjacency)
    return Known(data.factors, data.factor_levels, truth, data.bayes_ceiling).chosen(data.scored)


def score_run(
    found: Found,
    known: Known | None,
    summary: Mapping[str, Any],
    fitted: FittedRun | None = None,
    data: MultimodalData | None = None,
    draws: int = 50,
    seed: int = 0,
) -> dict[str, Any]:
    """All scores of a run; keys as in docs/evaluate.md.

    Args:
        found: What the run found.
        known: What is known of its samples, or None: then there are only scores that need no truth.
        summary: Its summary, whose `held_out_log_likelihood` and `variance_explained` are taken over.
        fitted: Model and guide; None leaves cross-modal prediction out.
        data: The samples; None leaves it out, too.
        draws: Draws of Z per sample there.
        seed: Seed of these draws and of random labellings.
    """
    scores = {} if known is None else scores_of(found, known, seed, Effort.thorough())
    return {
        **scores,
        "held_out_log_likelihood": summary.get("held_out_log_likelihood"),
        "variance_explained": summary.get("variance_explained", {}),
        "cross_modal": _cross_modal(found, fitted, data, draws, seed),
    }


def _cross_modal(
    found: Found, fitted: FittedRun | None, data: MultimodalData | None, draws: int, seed: int
) -> dict[str, Any]:
    if fitted is None or data is None or len(fitted.modalities) < 2:
        return {}
    scored = cross_modal(fitted, data, found.split, found.responsibilities, draws, seed)
    return {name: asdict(score) for name, score in scored.items()}
