"""Priors without a graph and without cells: what trains, what is read out, what is recorded and shown."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from tiny_fits import settings, tiny_samples

from causalpima.guides.encoders import GaussianParameters
from causalpima.inference.clusters.clustering import ReadOut
from causalpima.inference.data.tensors import TensorData
from causalpima.inference.reporting.exported_graph import exported_graph
from causalpima.inference.reporting.terminal import summary_table
from causalpima.inference.result import FitResult, rebuild_result
from causalpima.inference.run import Run
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training import clustering
from causalpima.inference.training.batched import batched_support
from causalpima.inference.training.build import build
from causalpima.inference.training.config import FitConfig, paper_settings
from causalpima.inference.training.fitted_run import load_run
from causalpima.inference.training.state import TrainingState
from causalpima.models.gaussian import LOG_2PI
from causalpima.models.mixture import GaussianMixture

STANDARD = {"model__prior": "standard"}
MIXTURE = {"model__prior": "mixture"}
WELL = {"pretraining__epochs": 30}
"""Long enough for clusters that lie apart in the embedding."""


def trained(**changes: Any) -> Run:
    run = Run(tiny_samples(), settings(**changes))
    run.train()
    return run


def finished(**changes: Any) -> FitResult:
    return trained(**changes).finish()


# Without cells.


@pytest.mark.parametrize("objective", ["collapsed", "meanfield", "paper"])
def test_no_cells_until_the_end(objective: str) -> None:
    run = Run(tiny_samples(), settings(**STANDARD, **WELL, objective=objective))
    stand_aside = ("model.mixture.", "model.graph.node_score", "model.graph.pair_weight", "model.graph.conditional")
    before = {name: value for name, value in run.weights().items() if name.startswith(stand_aside)}
    assert len(before) > 5
    run.train()
    after = run.weights()
    assert all(torch.equal(value, after[name]) for name, value in before.items()), "graph and mixture stand aside"
    assert not run.state.clustered
    record = run.state.history[-1]
    assert (record["terms"]["cells"], record["terms"]["cell_entropy"], record["reseeded"]) == (0.0, 0.0, 0)
    assert "occupied" not in record
    result = run.finish()
    assert result.status == "ok"
    assert result.summary["clusters"]["n_occupied"] == 4, "four clusters, far apart"
    assert not bool(run.state.model.latent_prior.in_force)  # type: ignore[union-attr]


def test_clusters_are_those_of_the_embedding_as_read_out() -> None:
    run = trained(**STANDARD, **WELL)
    run.state.return_to_best()
    loc, _ = embedding(run)
    result = run.finish()
    cell = result.responsibilities().to_numpy().argmax(1)
    mixture = run.state.model.mixture
    for k, of_cell in enumerate(mixture.component_cell.tolist()):
        members = loc[run.split == "train"][cell[run.split == "train"] == of_cell]
        if (mixture.component_cell == of_cell).sum() == 1 and len(members):
            np.testing.assert_allclose(mixture.component_loc[k].numpy(), members.mean(0), atol=0.05)


def embedding(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Mean and log-variance of q(Z|X) of all samples."""
    run.state.modules.eval()
    with torch.no_grad():
        posterior = run.state.guide.encode(next(run.tensors.batches(1000)))
    assert isinstance(posterior, GaussianParameters)
    return posterior.loc.numpy(), posterior.log_variance.numpy()


def test_p_n_is_fitted_to_the_cells_after_the_fact() -> None:
    run = trained(**STANDARD, graph__start_steps=300)
    result = run.finish()
    share = result.responsibilities().to_numpy()[run.split == "train"].mean(0)
    joint = np.exp(np.array(result.summary["graph"]["log_joint"])).reshape(-1)
    np.testing.assert_allclose(joint, share, atol=0.03)


def test_empty_cells_stay_empty_after_the_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result makes up no clusters; before training, where a mixture is to be trained, they split the largest one."""
    shares, split = {}, {}
    for name, changes in (("after", STANDARD), ("before", {"training__epochs": 0})):
        run = Run(tiny_samples(), settings(**changes, graph__start_steps=300))
        run.train()
        monkeypatch.setattr(clustering, "_read_out", without_the_last_cell)
        run.finish()
        shares[name] = run.state.model.graph.log_joint().exp().detach().flatten()[-1]
        mixture = cast(GaussianMixture, run.state.model.mixture)
        split[name] = not torch.equal(mixture.component_scale[mixture.component_cell == 3][0], torch.eye(2))
    assert shares["after"] < 0.01 < shares["before"]
    assert split == {"after": False, "before": True}


def without_the_last_cell(state: TrainingState, data: TensorData, embedding: np.ndarray, config: FitConfig) -> ReadOut:
    found = clustering._cells_of(embedding, 3, config)
    return dataclasses.replace(found, n_cells=4)


@pytest.mark.parametrize("stop", [1, 2])
@pytest.mark.parametrize("changes", [STANDARD, MIXTURE, {**STANDARD, "kl_weight": 3.0, "training__kl_warmup": 2}])
def test_resume_is_exact(tmp_path: Path, stop: int, changes: dict[str, Any]) -> None:
    whole = finished(**changes)
    folder, config = RunFolder(tmp_path / "run"), settings(**changes)
    folder.create(config.to_dict())
    first = Run(tiny_samples(), config)
    first.train(until=stop, folder=folder)
    first.save(folder)
    second = Run(tiny_samples(), config)
    second.restore(folder)
    second.train()
    result = second.finish()
    assert all(torch.equal(value, result.weights[name]) for name, value in whole.weights.items())
    assert result.summary["objective"] == whole.summary["objective"]


# The bounds of the prior itself.


def test_held_out_bounds_under_the_prior_by_hand() -> None:
    """log w = log N(z; 0, I) + Σ_m log p(x_m | z) - log q(z | x), the likelihoods in the units of the data."""
    run = trained(**STANDARD)
    result = run.finish()
    assert result.arrays is not None
    draws, (loc, log_variance) = result.arrays.draws, embedding(run)
    assert draws.log_weight_without_cells is not None
    z = draws.latent.astype(np.float64)
    log_p = -0.5 * (np.square(z) + LOG_2PI).sum(-1)
    whitened = np.square(z - loc[draws.samples]) / np.exp(log_variance[draws.samples])
    log_q = -0.5 * (whitened + log_variance[draws.samples] + LOG_2PI).sum(-1)
    expected = log_p - log_q + sum(draws.log_likelihood.values())
    np.testing.assert_allclose(draws.log_weight_without_cells, expected, rtol=1e-4)
    found = result.summary["objective"]["latent_prior"]
    held_out = expected[:, run.split[draws.samples] == "validation"]
    assert found["name"] == "standard"
    assert found["split"] == "validation"
    assert found["collapsed_bound"]["per_sample"] == pytest.approx(held_out.mean(), rel=1e-4)
    assert found["per_sample"] > found["collapsed_bound"]["per_sample"]


def test_no_such_bounds_where_the_prior_has_cells() -> None:
    result = finished()
    assert "latent_prior" not in result.summary["objective"]
    assert result.arrays is not None
    assert result.arrays.draws.log_weight_without_cells is None


# β and its warm-up.


def test_the_weight_rises_and_is_recorded() -> None:
    run = trained(kl_weight=3.0, training__kl_warmup=3, training__epochs=5, pretraining__kl_warmup=0)
    assert [record["kl_weight"] for record in run.state.history] == pytest.approx([3, 1, 2, 3, 3, 3])


def test_only_epochs_of_full_weight_are_compared() -> None:
    slow = {"training__epochs": 4, "training__learning_rate": 1e-6, "objective": "meanfield"}
    run = trained(**slow, kl_weight=50.0, training__kl_warmup=3)
    joint = [record["validation_objective"] for record in run.state.history if record["phase"] == "training"]
    assert max(joint) == joint[0], "the less weight, the higher"
    assert run.state.best_epoch in (4, 5)
    assert run.state.best_objective == max(joint[2:])
    assert run.finish().summary["objective"]["per_sample"] == max(joint[2:])


def test_what_is_recorded_sums_up_to_what_is_maximised() -> None:
    run = trained(**STANDARD, kl_weight=4.0)
    record = run.state.history[-1]
    assert sum(record["terms"].values()) == pytest.approx(record["validation_objective"])
    assert run.state.model.kl_weight == 4.0
    summary = run.finish().summary
    assert summary["objective"]["kl_weight"] == 4.0
    assert run.state.model.kl_weight == 1.0, "what is reported is a bound"


def test_variances_of_decoders_do_not_notice() -> None:
    """Of the first step: later ones have other networks."""
    variances = []
    for weight in (1.0, 7.0):
        once = {"pretraining__kind": "none", "training__epochs": 1, "training__batch_size": 99}
        run = trained(**STANDARD, **once, kl_weight=weight)
        variances.append(run.state.history[0]["decoder_variance"])
    assert variances[0] == pytest.approx(variances[1], rel=1e-5)


def test_a_large_weight_pulls_the_embedding_to_the_prior() -> None:
    def distance(weight: float) -> float:
        run = trained(**STANDARD, kl_weight=weight, training__epochs=20, pretraining__kind="none")
        loc, log_variance = embedding(run)
        return float(0.5 * (np.square(loc) + np.exp(log_variance) - 1 - log_variance).sum(1).mean())

    assert distance(1000.0) < 0.1 * distance(1.0)


def test_the_paper_has_none_of_it() -> None:
    config = paper_settings(settings(**STANDARD, kl_weight=2.0, training__kl_warmup=2))
    assert (config.model.prior, config.kl_weight, config.training.kl_warmup) == ("dag", 1.0, 0)


# Free weights.


def test_free_weights_are_the_shares_of_the_clusters() -> None:
    run = trained(**MIXTURE, graph__pseudo_count=1e-9)
    result = run.finish()
    share = result.responsibilities().to_numpy()[run.split == "train"].mean(0)
    joint = np.exp(np.array(result.summary["graph"]["log_joint"])).reshape(-1)
    np.testing.assert_allclose(joint, share, atol=1e-2)


def test_free_weights_train_as_the_complete_graph_does() -> None:
    free, complete = finished(**MIXTURE), finished(model__graph="complete")
    for name, value in complete.weights.items():
        assert torch.equal(free.weights[name], value), name


def test_free_weights_are_shown_as_no_graph() -> None:
    result = finished(**MIXTURE)
    assert result.graph().number_of_edges() == 0
    text = summary_table(result.summary)
    assert "no graph in the model: p(N) has a weight of its own for every cell" in " ".join(text.split())
    assert " -- " not in text
    assert result.arrays is not None
    assert not result.arrays.graph.adjacency.any()
    graph = result.arrays.graph
    exported = exported_graph(result.summary, graph.outcome_names, graph.log_joint, as_labelled=True)
    assert not exported.graph.any()
    assert "No graph in the model" in exported.note


# What goes together.

REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "a graph beside free weights": ("model.graph: expected its default", {**MIXTURE, "model__graph": "exact"}),
    "a random graph beside free weights": ("guide.graph: expected point", {**MIXTURE, "guide__graph": "bayesian"}),
    "a random graph without cells": ("guide.graph: expected point", {**STANDARD, "guide__graph": "bayesian"}),
    "a mask": ("mask: expected none", {**STANDARD, "mask": {"spectrum": ("A",), "curve": ("A", "B")}}),
    "decoders per cell": ("model.prior: expected a prior with", {**STANDARD, "decoder__per_cell": True}),
    "a law of cells": ("model.prior: expected a prior with", {**STANDARD, "decoder__kind": "linear"}),
    "labels that train": (
        "observe.use: expected names",
        {**STANDARD, "observe__variables": {"A": "cluster"}, "observe__use": "training"},
    ),
    "a warm-up that never ends": ("training.kl_warmup: expected at most", {"training__kl_warmup": 3}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_together_is_refused_by_name(case: str) -> None:
    message, changes = REFUSED[case]
    with pytest.raises(ValueError, match=rf"^{message}.*, got .*; .") as error:
        settings(**changes)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (STANDARD, "the prior standard"),
        (MIXTURE, "the prior mixture"),
        ({"kl_weight": 2.0}, "kl_weight"),
        ({"training__kl_warmup": 1}, "kl_warmup"),
    ],
)
def test_not_batched(changes: dict[str, Any], reason: str) -> None:
    run = Run(tiny_samples(), settings(**changes))
    found = batched_support(run.config, run.modalities)
    assert found is not None
    assert reason in found


def test_free_weights_draw_what_a_graph_draws() -> None:
    """The networks of a seed are the same under every prior."""

    def networks(config: FitConfig) -> dict[str, torch.Tensor]:
        torch.manual_seed(0)
        model, guide = build(config, Run(tiny_samples(), config).modalities)
        return {**dict(model.decoders.named_parameters()), **dict(guide.named_parameters())}

    plain = networks(settings())
    for changes in (STANDARD, MIXTURE):
        assert all(torch.equal(value, plain[name]) for name, value in networks(settings(**changes)).items())


@pytest.mark.parametrize("changes", [STANDARD, MIXTURE])
def test_a_finished_run_is_loaded_with_its_cells(tmp_path: Path, changes: dict[str, Any]) -> None:
    result = finished(**changes)
    folder = RunFolder(tmp_path / "run")
    folder.create(result.config)
    result.write(folder)
    for fitted in (rebuild_result(result), load_run(folder.path)):
        assert fitted.model.prior_in_force is None
        assert torch.equal(fitted.model.mixture.component_loc, result.weights["model.mixture.component_loc"])
