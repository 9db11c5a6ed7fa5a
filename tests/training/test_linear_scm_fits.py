"""Fits with a linear structural equation model as their prior: bounds, labels, resume, what comes out."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pyro.infer import Trace_ELBO
from resumed_runs import whole_and_resumed
from tiny_fits import settings, tiny_samples

from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.objectives.enumerated import CollapsedELBO
from causalpima.inference.result import FitResult
from causalpima.inference.run import Run
from causalpima.inference.training.config import FitConfig, ObserveConfig
from causalpima.inference.training.fitted_run import load_run
from causalpima.models.latent_priors import LinearSCM


def samples(n: int = 60) -> MultimodalData:
    """A -> B by the frequencies of four clusters; labels of both."""
    data = tiny_samples(n)
    cluster = data.factors["cluster"]
    factors = {"a": cluster // 2, "b": cluster % 2}
    return dataclasses.replace(data, factors=factors, factor_levels={"a": ("no", "yes"), "b": ("0", "1")})


def configured(**changes: Any) -> FitConfig:
    labels = ObserveConfig({"A": "a", "B": "b"}, use="training", fraction=0.5)
    return settings(**{"model__prior": "linear_scm", "model__latent_dim": 2, "observe": labels, **changes})


def trained(config: FitConfig) -> FitResult:
    run = Run(samples(), config)
    run.train()
    return run.finish()


def prior_of(run: Run) -> LinearSCM:
    prior = run.state.model.latent_prior
    assert isinstance(prior, LinearSCM)
    return prior


@pytest.mark.parametrize(
    ("objective", "changes"),
    [("collapsed", {}), ("meanfield", {"kl_weight": 0.5}), ("paper", {"model__covariance": "diagonal"})],
)
def test_every_objective_trains_all_of_it_and_reads_clusters_out(objective: str, changes: dict[str, Any]) -> None:
    run = Run(samples(), configured(objective=objective, **changes))
    before = {name: value.detach().clone() for name, value in prior_of(run).named_parameters()}
    run.train()
    after = dict(prior_of(run).named_parameters())
    assert [name for name in before if torch.equal(before[name], after[name])] == []
    result = run.finish()
    assert result.status in ("ok", "collapsed")
    assert result.arrays is not None
    assert result.arrays.latent_loc.shape == (60, 4)
    assert result.summary["labelling"]["source"] == "labels"
    # Labels that were trained with hold in what is read out.
    told = result.arrays.node_labels
    assert told is not None
    cells = np.stack(np.unravel_index(result.arrays.responsibilities.argmax(1), (2, 2)), 1)
    assert (cells[told >= 0] == told[told >= 0]).all()


def test_without_held_out_samples_the_bound_has_terms_of_the_labels(tmp_path: Path) -> None:
    result = trained(configured(training__validation_fraction=0.0))
    terms = result.history[-1]["terms"]
    assert {name for name in terms if "label" in name} == {"reconstruction/label_A", "reconstruction/label_B"}
    assert result.history[-1]["objective"] == pytest.approx(sum(terms.values()))
    result.save(tmp_path / "run")
    assert (tmp_path / "run" / "figures" / "objective.png").exists()


def test_the_bound_is_that_of_pyro_with_labels_of_some_samples() -> None:
    run = Run(samples(), configured())
    batch = next(iter(run.task.training.batches(16)))
    assert batch.cells is not None
    assert 0 < int((batch.cells.sum(1) == 1).sum()) < 16
    found = []
    for elbo in (CollapsedELBO(), Trace_ELBO(max_plate_nesting=1)):
        torch.manual_seed(3)
        with run._working():
            torch.manual_seed(3)
            found.append(elbo.loss(run.state.model, run.state.guide, batch))
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    whole, resumed = whole_and_resumed(samples(), configured(training__epochs=4), 3, tmp_path / "run")
    expected, found = whole.finish().weights, resumed.finish().weights
    assert all(torch.equal(found[name], value) for name, value in expected.items())


def test_the_model_is_kept_with_the_run_and_answers_questions(tmp_path: Path) -> None:
    result = trained(configured())
    result.save(tmp_path / "run")
    loaded = load_run(tmp_path / "run").model.latent_prior
    assert isinstance(loaded, LinearSCM)
    assert not bool(loaded.in_force)
    torch.testing.assert_close(loaded.weight.detach(), result.weights["model.latent_prior.weight"])


def test_known_edges_are_those_of_the_linear_model() -> None:
    config = configured()
    config = dataclasses.replace(config, knowledge=dataclasses.replace(config.knowledge, forbid=("A->B",)))
    run = Run(samples(), config)
    run.train()
    assert float(prior_of(run).adjacency_weight()[0, 1].detach()) == 0
    assert float(prior_of(run).adjacency_weight()[1, 0].detach()) != 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"observe": ObserveConfig({"A": "a"}, use="training")},
            "observe.variables: expected a variable for every node",
        ),
        (
            {"observe": ObserveConfig({"A": "a", "B": "b"})},
            "observe.use: expected training with model.prior linear_scm",
        ),
        ({"mask": {"spectrum": ("A",), "curve": ("B",)}}, "mask: expected none with model.prior linear_scm"),
        ({"decoder__per_cell": True}, "model.prior: expected a prior with cells"),
    ],
)
def test_what_does_not_go_with_it_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        configured(**changes)
