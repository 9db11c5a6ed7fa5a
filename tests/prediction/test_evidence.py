"""Log-likelihoods against integrals over a grid of Z, in one and two dimensions."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import random_run, samples
from torch import Tensor

from causalpima.inference.analyses.predict import PredictionOptions, predict
from causalpima.inference.analyses.samples import fit_to_run
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.training.config import GuideConfig
from causalpima.inference.training.fitted_run import FittedRun
from causalpima.models.batch import Standardisation

SEEDS, DRAWS = 10, 4000


def grid(latent_dim: int) -> tuple[Tensor, float]:
    """Points `[n, J]` and log of the volume of each."""
    line = torch.linspace(-9, 9, 1501 if latent_dim == 1 else 241)
    points = torch.cartesian_prod(*[line] * latent_dim).reshape(-1, latent_dim)
    return points, latent_dim * float((line[1] - line[0]).log())


@torch.no_grad()
def integrals(fitted: FittedRun, data: MultimodalData, row: int, *sets: tuple[str, ...]) -> list[float]:
    """log ∫ Σ_c p(c) p(z | c) Π_m p(x_m | z, c) dz of sets of modalities, in the units of the data, unweighted."""
    points, log_volume = grid(fitted.model.mixture.latent_dim)
    mixture, totals = fitted.model.mixture, [list[Tensor]() for _ in sets]
    for k in range(mixture.n_components):
        normal = torch.distributions.MultivariateNormal(mixture.component_loc[k], scale_tril=mixture.component_scale[k])
        cell = int(mixture.component_cell[k])
        value = fitted.model.graph.log_joint().reshape(-1)[cell] + mixture.component_log_share[k]
        value = value + normal.log_prob(points)
        of_names = {name: _log_likelihood(fitted, data, row, name, points, cell) for name in {*chain(*sets)}}
        for names, total in zip(sets, totals, strict=True):
            total.append(sum((of_names[name] for name in names), value))
    return [float(torch.logsumexp(torch.stack(total).flatten(), 0)) + log_volume for total in totals]


def _log_likelihood(fitted: FittedRun, data: MultimodalData, row: int, name: str, points: Tensor, cell: int) -> Tensor:
    standardisation, raw = fitted.modalities[name].standardisation, data.modalities[name][row].astype(np.float64)
    value = torch.tensor(np.float32(standardisation.apply(raw))).double()
    step = 1e-5 * np.maximum(np.abs(raw), 0.1)
    slope = (standardisation.apply(raw + step) - standardisation.apply(raw - step)) / (2 * step)
    measured = data.measured(name)[row]
    distribution = fitted.model.decode(name, points, torch.full((len(points),), cell))
    if name in data.observed:
        distribution = distribution.restricted(torch.tensor(measured))
    return distribution.log_prob(value.expand(len(points), -1)) + np.log(np.abs(slope))[measured].sum()


CASES: dict[str, dict[str, Any]] = {
    "one dimension": {"latent_dim": 1},
    "two dimensions": {"latent_dim": 2, "standardisation": Standardisation(1.5, 0.4)},
    "heads": {"decoder": {"per_cell": True}, "standardisation": Standardisation(1.0, 0.4, "asinh", 0.7)},
    "law": {"latent_dim": 1, "decoder": {"kind": "linear"}, "standardisation": Standardisation(0.3, 0.3, "log")},
    "weights": {"latent_dim": 1, "weight": 0.3},
    "mixture of experts": {"latent_dim": 1, "guide": GuideConfig("moe")},
    "mixture of products": {"latent_dim": 2, "guide": GuideConfig("mopoe")},
    "concatenation": {"latent_dim": 1, "guide": GuideConfig("concat")},
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_log_likelihood_is_the_integral(case: str) -> None:
    fitted, data = random_run(**CASES[case]), samples(4)
    runs = [predict(fitted, fit_to_run(data, fitted), PredictionOptions(DRAWS, seed)) for seed in range(SEEDS)]
    for row, name in ((0, "vector"), (1, "curve")):
        _check([float(run.log_likelihood[row]) for run in runs], *integrals(fitted, data, row, (name,)))
    for row in (2, 3):
        both, curve, vector = integrals(fitted, data, row, ("curve", "vector"), ("curve",), ("vector",))
        _check([float(run.log_likelihood[row]) for run in runs], both)
        for name, other in (("curve", vector), ("vector", curve)):
            _check([float(run[f"{name}_log_likelihood"][row]) for run in runs], both - other)
    assert float(runs[0].vector_log_likelihood[0]) == float(runs[0].log_likelihood[0])
    assert np.isnan(runs[0].curve_log_likelihood[0])


def _check(estimates: list[float], exact: float) -> None:
    """Their mean is exact within its standard error; 1e-4 is for the grid and the bias of the logarithm."""
    error = np.std(estimates, ddof=1) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - exact) < 5 * error + 1e-4, (np.mean(estimates), exact, error)
    assert error < 0.1, "the estimate says too little"


def test_missing_elements_are_left_out() -> None:
    fitted, data = random_run(latent_dim=1), samples(4)
    observed = np.ones((4, 4), dtype=bool) & data.present["curve"][:, None]
    observed[2, 1:3] = False
    values = np.where(observed, data.modalities["curve"], 0).astype(np.float32)
    gaps = samples(4, modalities={**data.modalities, "curve": values}, observed={"curve": observed})
    runs = [predict(fitted, fit_to_run(gaps, fitted), PredictionOptions(DRAWS, seed)) for seed in range(SEEDS)]
    _check([float(run.log_likelihood[2]) for run in runs], *integrals(fitted, gaps, 2, ("curve", "vector")))


def test_a_sample_whose_modalities_disagree_stands_out() -> None:
    """What a modality is given the others falls when it is put beside those of another sample."""
    fitted, data = random_run(latent_dim=1), samples(40, seed=2)
    before = predict(fitted, fit_to_run(data, fitted), PredictionOptions(500))
    odd = np.array(data.modalities["vector"])
    odd[7] += 40
    after = predict(fitted, fit_to_run(samples(40, 2, modalities={**data.modalities, "vector": odd}), fitted))
    assert after.vector_log_likelihood[7] < before.vector_log_likelihood[7] - 50
    assert int(np.argmin(after.log_likelihood.to_numpy())) == 7
