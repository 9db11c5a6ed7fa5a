"""Whole runs with a block of Z per node: trained, labelled, resumed, loaded, predicted from, renamed."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from resumed_runs import whole_and_resumed
from test_observed import BOTH, samples
from test_run import same
from tiny_fits import settings, tiny_samples

from causalpima.inference.analyses.predict import read_samples
from causalpima.inference.analyses.predictive_moments import Noise, draw
from causalpima.inference.clusters.names import CellNames
from causalpima.inference.findings.arrays import MixtureArrays
from causalpima.inference.findings.posterior import learned_summary
from causalpima.inference.objectives import closed_form
from causalpima.inference.objectives.closed_form import Components
from causalpima.inference.result import FitResult, rebuild_result
from causalpima.inference.run import Run
from causalpima.inference.store.posterior_file import read_posterior
from causalpima.inference.training.batched import batched_support
from causalpima.inference.training.config import FitConfig, ObserveConfig
from causalpima.inference.training.fitted_run import load_run
from causalpima.inference.training.mixture_updates import apply_block_update, block_moments, log_prior
from causalpima.models.batch import Batch
from causalpima.models.block_mixture import NodeMixture
from causalpima.models.mixture import Covariance


def configured(**changes: Any) -> FitConfig:
    return settings(model__prior="nodewise", **changes)


def trained(config: FitConfig, missing: bool = False) -> FitResult:
    run = Run(tiny_samples(80, missing=missing), config)
    run.train()
    return run.finish()


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_updates_never_lower_the_bound_that_they_belong_to(kind: Covariance) -> None:
    """The collapsed one at fixed draws, with a decoder per cell, plus the declared prior."""
    for seed in range(5):
        torch.manual_seed(seed)
        mixture, draws, per_cell = NodeMixture((2, 3), 2, kind), 2 * torch.randn(40, 4), torch.randn(40, 6)
        batch, log_joint = Batch.whole({"a": torch.zeros(40, 1)}), torch.log_softmax(torch.randn(6), 0)
        q, values = (torch.zeros(40, 4), torch.ones(40, 4)), []
        for _ in range(7):
            parts = Components(log_joint, mixture.component_loc, mixture.component_scale, mixture.component_cell)
            bound = closed_form.collapsed(draws, *q, parts, {"per_cell": per_cell}).total.sum()
            values.append(bound + sum(log_prior(mixture.block(name), 1e-3) for name in mixture.visible))
            r = torch.softmax(log_joint + mixture.log_density(draws) + per_cell, -1)
            apply_block_update(mixture, block_moments(mixture, batch, r, draws), 1e-3, 1e-4)
        changes = torch.stack(values).diff()
        assert changes.min() > -1e-9
        assert changes[0] > 1e-3, "there was something to gain"


@pytest.mark.float32
@pytest.mark.parametrize(
    ("objective", "changes"),
    [
        ("collapsed", {"guide__prior_expert": True, "distillation__epochs": 1}),
        ("collapsed", {"mixture__updates": "gradient", "guide__fusion": "moe"}),
        ("meanfield", {"model__covariance": "diagonal"}),
        ("meanfield", {"decoder__per_cell": True, "mixture__updates": "gradient"}),
        ("paper", {}),
    ],
)
def test_every_objective_runs_and_the_latent_is_a_block_per_node(objective: str, changes: dict[str, Any]) -> None:
    result = trained(configured(objective=objective, nodes={"A": 2, "B": 3}, **changes), missing=True)
    arrays = result.arrays
    assert arrays is not None
    assert arrays.latent_loc.shape == (80, 4)
    assert np.isfinite(arrays.latent_loc).all()
    assert arrays.mixture.loc.shape == (6, 4)
    first = arrays.mixture.loc[:, :2].reshape(2, 3, 2)
    assert (first == first[:, :1]).all(), "the first block tells nothing but the outcome of the first node"
    assert arrays.mixture.covariance.shape == (6, 4, 4)
    assert not arrays.mixture.covariance[:, :2, 2:].any()


@pytest.mark.float32
def test_every_decoder_sees_all_blocks_and_every_encoder_gives_them() -> None:
    run = Run(tiny_samples(40), configured(model__latent_dim=3, nodes={"A": 2, "B": 2, "C": 2}))
    assert run.state.model.mixture.latent_dim == 9
    _, batch = next(read_samples(rebuild_result(trained(configured())), tiny_samples(9)).batches(9, torch.zeros(())))
    assert run.state.guide.encode(batch).loc.shape == (9, 9)


def test_labels_tell_which_block_is_which_node() -> None:
    """The read-out numbers cells so that labels agree, by exchange of nodes and names of outcomes alone."""
    run = Run(samples(80), configured(observe=ObserveConfig(BOTH)))
    run.train()
    mixture = run.state.model.mixture
    assert isinstance(mixture, NodeMixture)
    cells = torch.cartesian_prod(torch.arange(2), torch.arange(2))
    seen = []
    for name in mixture.visible:
        level = mixture.block_levels(name)
        (node,) = (k for k in range(2) if torch.unique(torch.stack([level, cells[:, k]]), dim=1).shape[1] == 2)
        seen.append(node)
    assert sorted(seen) == [0, 1]


@pytest.mark.float32
@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_a_resumed_run_is_the_same_bit_for_bit(tmp_path: Path, epoch: int) -> None:
    data, config = samples(80), configured(observe=ObserveConfig(BOTH, 0.5, use="training"))
    whole, resumed = whole_and_resumed(data, config, epoch, tmp_path)
    assert same(resumed.finish(), whole.finish())
    assert all(torch.equal(resumed.weights()[name], value) for name, value in whole.weights().items())


@pytest.mark.float32
def test_a_saved_run_is_loaded_drawn_from_and_renamed(tmp_path: Path) -> None:
    data = samples(80)
    run = Run(data, configured(observe=ObserveConfig(BOTH)))
    run.train()
    result = run.finish()
    result.save(tmp_path / "run")
    fitted = load_run(tmp_path / "run")
    _, batch = next(read_samples(fitted, data).batches(80, fitted.model.mixture.component_loc))
    drawn = draw(fitted, batch, Noise.make(3, fitted.model))
    assert bool(torch.isfinite(drawn.latent).all())
    assert read_posterior(tmp_path / "run" / "posterior.nc")["posterior"].dataset.sizes["latent"] == 4
    assert np.isfinite(result.predict(data, draws=5).curve_mean).all()
    before = result.arrays
    assert before is not None
    swapped = np.array([0, 2, 1, 3])
    names = CellNames(swapped, {"B": 2, "A": 2}, (("l", "r"), ("lo", "hi")), ("B", "A"))
    after = run.named(names).arrays
    assert after is not None
    np.testing.assert_allclose(after.mixture.loc[swapped], before.mixture.loc)
    np.testing.assert_allclose(after.mixture.covariance[swapped], before.mixture.covariance)
    assert list(result.config["nodes"]) == ["A", "B"]


@pytest.mark.float32
def test_lingam_gets_the_block_of_every_node_and_nothing_where_names_mix_them() -> None:
    pytest.importorskip("causallearn")
    config = configured(observe=ObserveConfig(BOTH), model__latent_dim=1, model__graph="posthoc:lingam")
    run = Run(samples(80), config)
    run.train()
    fitted = run.finish().arrays
    assert fitted is not None

    def graph_of(cell: list[int]) -> np.ndarray | None:
        """Of effects that only one order of the columns of Z has, with cells renamed."""
        arrays = dataclasses.replace(fitted, mixture=_renumbered(fitted.mixture, cell), latent_loc=made)
        found = learned_summary(arrays)
        assert "posthoc" in found or "blocks of Z that are of no node" in found["posthoc_left_out"]["reason"]
        return np.array(found["posthoc"]["cpdag"]) if "posthoc" in found else None

    first = np.random.default_rng(0).uniform(size=80)
    made = np.stack([first, first + 0.3 * np.random.default_rng(1).uniform(size=80)], axis=1)
    straight, exchanged = graph_of([0, 1, 2, 3]), graph_of([0, 2, 1, 3])
    assert straight is not None
    assert exchanged is not None
    assert straight.sum() == 1
    np.testing.assert_array_equal(exchanged, straight.T)
    assert graph_of([0, 1, 3, 2]) is None


def _renumbered(mixture: MixtureArrays, cell: list[int]) -> MixtureArrays:
    """Means of which the first dimension is of node A and the second of node B, then cells with other numbers."""
    loc = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    return dataclasses.replace(mixture, loc=loc, cell=np.array(cell))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mask": {"spectrum": ("A",), "curve": ("B",)}}, "mask: expected none with model.prior nodewise, got one of"),
        ({"independent_nodes": True}, "model.prior: expected another prior than nodewise beside side information"),
        ({"read_outs": {"curve": "moments"}}, "model.prior: expected another prior than nodewise"),
    ],
)
def test_what_does_not_go_with_it_is_refused_with_the_reason(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        configured(**changes)


def test_starts_of_it_are_not_batched() -> None:
    run = Run(tiny_samples(), configured())
    assert "per node" in str(batched_support(run.config, run.modalities))
