"""Every setting with every value of every other trains to finite numbers that hang together."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from tiny_fits import pairs, pairwise, settings, tiny_samples

from causalpima.inference.result import FitResult
from causalpima.inference.run import Run

LEVELS: dict[str, list[Any]] = {
    "objective": ["collapsed", "meanfield", "paper"],
    "mixture__gaussians": ["several", "one"],
    "model__covariance": ["diagonal", "full"],
    "decoder__per_cell": [False, True],
    "decoder__variance": ["analytic", "learned", "fixed"],
    "decoder__variance_per": ["element", "modality"],
    "model__latent_dim": [1, 3],
    "nodes": [(2,), (3,), (2, 3)],
    "pretraining__kind": ["vae", "reconstruction", "none"],
    "mixture__updates_per_epoch": [0, 1, 3],
    "training__validation_fraction": [0.0, 0.2],
    "guide__prior_expert": [False, True],
    "decoder__likelihood": ["normal", "student_t"],
    "model__likelihood_scaling": ["none", "dimension"],
    "training__modality_dropout": [0.0, 0.4],
    "distillation__epochs": [0, 1],
    "read_out__shape": ["curved", "round"],
    "gaps": [False, True],
    "covariates": [False, True],
    "missing": [False, True],
}
ROWS = pairwise(LEVELS)


def test_the_table_holds_every_pair() -> None:
    held = {pair for row in ROWS for pair in pairs({name: [value] for name, value in row.items()})}
    assert held == set(pairs(LEVELS))
    assert len(ROWS) < 25


def name_of(row: dict[str, Any]) -> str:
    return "-".join(str(value) for value in row.values())


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_trains(row: dict[str, Any]) -> None:
    changes = dict(row)
    data = tiny_samples(
        41 if row["training__validation_fraction"] else 33, missing=changes.pop("missing"), gaps=changes.pop("gaps")
    )
    if changes.pop("covariates"):
        codes, levels = np.arange(data.n_samples) % 3, ("a", "b", "c")
        data = dataclasses.replace(data, covariates={"batch": codes}, covariate_levels={"batch": levels})
    changes["nodes"] = {f"N{i}": outcomes for i, outcomes in enumerate(changes["nodes"])}
    run = Run(data, settings(**changes))
    assert (run.split == "train").sum() % 16 == 1, "the last batch has a single sample"
    before = run.weights()
    run.train()
    assert all(bool(torch.isfinite(value).all()) for value in run.weights().values() if value.is_floating_point())
    assert moved(run, before)
    check_records(run)
    check_result(run, run.finish())


def moved(run: Run, before: dict[str, torch.Tensor]) -> bool:
    """Whether every parameter of model and guide has moved (an edge weight may be back where it was: at zero)."""
    after = dict(run.state.modules.named_parameters())
    learned = [name for name in before if name in after and after[name].requires_grad and after[name].numel()]
    return all(not torch.equal(after[name], before[name]) for name in learned)


def check_records(run: Run) -> None:
    phases = ["pretraining"] * run.config.pretraining_epochs + ["training"] * 2
    phases += ["distillation"] * run.config.distillation.epochs
    history = run.state.history
    assert [record["phase"] for record in history] == phases
    assert [record["epoch"] for record in history] == list(range(1, len(phases) + 1))
    for record in history:
        if record["phase"] == "distillation":
            assert -math.inf < record["objective"] <= 0
            continue
        held_out = record["validation_objective"]
        assert math.isfinite(record["objective"])
        assert (held_out is None) == (run.config.training.validation_fraction == 0)
        assert sum(record["terms"].values()) == pytest.approx(record["objective"] if held_out is None else held_out)
        assert set(record["terms"]) >= {"reconstruction/spectrum", "reconstruction/curve", "latent", "latent_entropy"}
        assert all(variance > 0 for variance in record["decoder_variance"].values())
        if record["phase"] == "training":
            assert 1 - 1e-9 <= record["effective_components"] <= run.state.model.graph.n_cells + 1e-9
            assert record["reseeded"] >= 0


def check_result(run: Run, result: FitResult) -> None:
    arrays = result.arrays
    assert arrays is not None
    assert result.status in ("ok", "collapsed")
    n, n_cells = run.data.n_samples, run.state.model.graph.n_cells
    assert arrays.responsibilities.shape == (n, n_cells)
    np.testing.assert_allclose(arrays.responsibilities.sum(1), 1, atol=1e-6)
    assert np.exp(arrays.graph.log_joint).sum() == pytest.approx(1, abs=1e-6)
    assert arrays.graph.temperature == pytest.approx(run.config.graph.temperature_end)
    assert arrays.mixture.weight.sum() == pytest.approx(1, abs=1e-6)
    assert sorted(set(arrays.mixture.cell.tolist())) == list(range(n_cells))
    if run.config.mixture.gaussians == "one":
        assert len(arrays.mixture.cell) == n_cells
    assert bool((np.linalg.eigvalsh(arrays.mixture.covariance) > 0).all())
    for modality in arrays.modalities.values():
        assert np.isfinite(modality.decoded).all()
        assert (modality.variance is None) == (modality.likelihood == "student_t")
        assert modality.variance is None or modality.variance > 0
    check_draws(run, result)


def check_draws(run: Run, result: FitResult) -> None:
    assert result.arrays is not None
    draws = result.arrays.draws
    assert np.isfinite(draws.latent).all()
    assert np.isfinite(draws.log_weight).all()
    for name, values in draws.log_likelihood.items():
        present = run.data.present[name][draws.samples]
        assert (np.isfinite(values) == present).all(), "NaN where absent, and only there"
    assert all(np.isfinite(values).all() for values in draws.predictive.values())
