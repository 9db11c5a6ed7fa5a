"""Labels of nodes: which are used, what they name, and what is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from tiny_fits import settings, tiny_samples

from causalpima.inference.clusters.labels import UNKNOWN, Clusters
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.run import Run
from causalpima.inference.training.batched import batched_support
from causalpima.inference.training.clustering import cell_counts, embed, update_mixture
from causalpima.inference.training.config import FitConfig, ObserveConfig
from causalpima.inference.training.side_information import make_labeller, observed_labels

BOTH = {"A": "first", "B": "second"}


def samples(n: int = 60, unlabelled: int = 0) -> MultimodalData:
    """The four clusters as two binary factors, the last of which some samples lack."""
    data = tiny_samples(n)
    cluster = data.factors["cluster"]
    factors = {"first": cluster // 2, "second": cluster % 2}
    factors["second"] = np.where(np.arange(n) < unlabelled, UNKNOWN, factors["second"])
    levels = {"first": ("low", "high"), "second": ("left", "right")}
    return dataclasses.replace(data, factors=factors, factor_levels=levels)


def observing(variables: dict[str, str], fraction: float = 1.0, **changes: Any) -> FitConfig:
    return settings(**changes, observe=ObserveConfig(variables, fraction))


TRAINING = np.arange(10, 60)


def test_nothing_is_observed_by_default() -> None:
    assert observed_labels(settings(), samples(), TRAINING) is None
    assert make_labeller(settings(), samples(), TRAINING) is None


def test_labels_of_training_samples_alone_are_used() -> None:
    data = samples(unlabelled=20)
    found = observed_labels(observing(BOTH), data, TRAINING)
    assert found is not None
    assert (found.codes[:10] == UNKNOWN).all()
    np.testing.assert_array_equal(found.codes[10:, 0], data.factors["first"][10:])
    np.testing.assert_array_equal(found.codes[10:, 1], data.factors["second"][10:])
    assert found.labelled.tolist() == [False] * 10 + [True] * 50


def test_a_fraction_is_of_all_labelled_samples_and_alike_for_every_restart() -> None:
    data = samples()
    used = [
        observed_labels(observing(BOTH, 0.15, seed=seed, restart=restart), data, TRAINING)
        for seed, restart in ((0, 0), (0, 3), (1, 0))
    ]
    masks = [labels.labelled for labels in used if labels is not None]
    assert [int(mask.sum()) for mask in masks] == [9, 9, 9], "15 % of 60"
    np.testing.assert_array_equal(masks[0], masks[1])
    assert (masks[0] != masks[2]).any()
    assert not masks[0][:10].any()


@pytest.mark.parametrize(
    ("config", "match"),
    [
        (observing({"Q": "first"}), "^observe: expected nodes of --nodes .A, B., got 'Q'"),
        (observing({"A": "frist"}), "^observe: expected a label of tiny for node 'A', got 'frist'; there is first$"),
        (observing({"A": "four"}), "^observe: expected at most 2 levels in 'four', as node 'A' has outcomes, got 4"),
        (observing({"A": "none"}), "^observe: expected a label of some training sample, got none in none"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(config: FitConfig, match: str) -> None:
    data = samples()
    more = {"four": tiny_samples(60).factors["cluster"], "none": np.full(60, UNKNOWN)}
    levels = {"four": ("a", "b", "c", "d"), "none": ("a", "b")}
    data = dataclasses.replace(data, factors={**data.factors, **more}, factor_levels={**data.factor_levels, **levels})
    with pytest.raises(ValueError, match=match):
        observed_labels(config, data, TRAINING)


def test_levels_that_no_label_has_are_told() -> None:
    data = samples()
    data.factors["second"][:] = np.where(data.factors["second"] == 1, UNKNOWN, 0)
    found = observed_labels(observing(BOTH), data, TRAINING)
    assert found is not None
    assert found.levels_without_label() == {"second": ["right"]} or found.levels_without_label() == {"B": ["right"]}


@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_numbered_by_labels(seed: int) -> None:
    data = samples()
    truth = 2 * data.factors["first"] + data.factors["second"]
    numbering = np.random.default_rng(seed).permutation(4)
    r = np.eye(4)[np.argsort(numbering)[truth]][TRAINING]
    labeller = make_labeller(observing(BOTH, 0.2), data, TRAINING)
    assert labeller is not None
    found = labeller(Clusters(r, np.zeros((50, 2))))
    np.testing.assert_array_equal(found.permutation, numbering)
    assert (found.source, found.named_nodes) == ("labels", ("A", "B"))
    assert found.details["left_out_agreement"] == {"A": 1.0, "B": 1.0}
    assert found.details["n_labelled"] == 12
    assert (found.details["groups_without_label"], found.details["unsettled_groups"]) == ([], [])
    assert found.details["gap"] > 1


def only(data: MultimodalData, wanted: list[int]) -> MultimodalData:
    """The same samples, with labels of some clusters alone."""
    there = np.isin(2 * data.factors["first"] + data.factors["second"], wanted)
    factors = {name: np.where(there, codes, UNKNOWN) for name, codes in data.factors.items()}
    return dataclasses.replace(data, factors=factors)


@pytest.mark.parametrize(
    ("wanted", "named", "missing"),
    [
        ([0, 1, 2], ("A", "B"), ["high,right"]),
        ([0, 1], (), ["high,left", "high,right"]),  # of A only one level has labels
        ([0, 3], (), ["low,right", "high,left"]),
        ([0], (), ["low,right", "high,left", "high,right"]),
    ],
)
def test_nodes_that_labels_leave_open_are_not_named(
    wanted: list[int], named: tuple[str, ...], missing: list[str]
) -> None:
    data = only(samples(), wanted)
    r = np.eye(4)[2 * samples().factors["first"] + samples().factors["second"]][TRAINING]
    labeller = make_labeller(observing(BOTH), data, TRAINING)
    assert labeller is not None
    found = labeller(Clusters(r, np.zeros((50, 2))))
    assert found.named_nodes == named
    assert found.details["groups_without_label"] == missing
    assert found.details["n_groups"] == 4
    assert found.details["unsettled_groups"] == (missing if len(missing) > 1 else [])
    assert (found.details["gap"] < 1) == (len(missing) > 1)


def test_labels_of_one_node_say_nothing_of_the_other() -> None:
    data = samples()
    r = np.eye(4)[2 * data.factors["first"] + data.factors["second"]][TRAINING]
    labeller = make_labeller(observing({"A": "first"}), data, TRAINING)
    assert labeller is not None
    found = labeller(Clusters(r, np.zeros((50, 2))))
    assert (found.named_nodes, found.details["n_groups"]) == (("A",), 2)
    assert found.details["groups_without_label"] == found.details["unsettled_groups"] == []
    assert set(found.details["left_out_agreement"]) == {"A"}


@pytest.mark.parametrize("name", ["fraction", "use"])
def test_settings_of_labels_without_any_are_refused(name: str) -> None:
    alone = settings(**{f"observe__{name}": {"fraction": 0.5, "use": "training"}[name]})
    with pytest.raises(ValueError, match=rf"^observe.{name}: expected it with labels, got none"):
        observed_labels(alone, samples(), TRAINING)


def telling(data: MultimodalData, **changes: Any) -> Run:
    """A run in which labels tell N during training."""
    observe = ObserveConfig(BOTH, use="training")
    return Run(data, settings(**changes, observe=observe))


@pytest.mark.float32
@pytest.mark.parametrize("objective", ["collapsed", "meanfield", "paper"])
def test_labels_of_all_samples_give_supervised_counts(objective: str) -> None:
    data = samples()
    run = telling(data, objective=objective)
    cell = (2 * data.factors["first"] + data.factors["second"])[run.split == "train"]
    with run._working():
        counts = cell_counts(run.state, run.task.training, run.config)
        update_mixture(run.state, run.task.training, run.config)
        loc = embed(run.state, run.task.training).loc
    np.testing.assert_allclose(counts.numpy(), np.bincount(cell, minlength=4), rtol=1e-5)
    mixture = run.state.model.mixture
    if objective != "collapsed":  # the moments of q(Z|X), not of drawn z
        for code in range(4):
            expected = loc.numpy()[cell == code].mean(0)
            found = mixture.component_loc[mixture.component_cell == code].squeeze(0).numpy()
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.float32
def test_labels_tell_nothing_after_training_and_nothing_of_held_out_samples() -> None:
    run = telling(samples())
    assert run.task.training.cells is not None
    assert run.task.training.cells.shape == ((run.split == "train").sum(), 4)
    assert bool((run.task.training.cells.sum(1) == 1).all())
    assert run.tensors.cells is None
    assert run.task.validation is not None
    assert run.task.validation.cells is None
    run.train()
    assert run.finish().status in ("ok", "collapsed")


def test_labels_during_training_are_not_batched() -> None:
    run = telling(samples())
    assert "labels tell N" in (batched_support(run.config, run.modalities) or "")


@pytest.mark.float32
def test_a_run_has_the_names_of_its_labels_everywhere() -> None:
    data = samples(120)
    run = Run(data, observing(BOTH, 0.3, pretraining__epochs=8))
    run.train()
    result = run.finish()
    assert result.arrays is not None
    assert result.arrays.graph.outcome_names == (("low", "high"), ("left", "right"))
    assert result.responsibilities().cell.to_numpy().tolist() == ["low,left", "low,right", "high,left", "high,right"]
    assert result.summary["labelling"]["named_nodes"] == ["A", "B"]
    assert result.summary["labelling"]["details"]["n_labelled_by_node"] == {"A": 36, "B": 36}
    scores = result.summary["evaluation"]
    assert scores["split"] == "unlabelled"
    assert scores["n_samples"] == 120 - 36
    assert scores["assignment"] == {"first": "A", "second": "B"}
    best = result.arrays.responsibilities.argmax(1)
    assert (best // 2 == data.factors["first"]).mean() > 0.9
    assert (best % 2 == data.factors["second"]).mean() > 0.9
    assert "Named by labels of 36 training samples: A, B." in " ".join(result.table().split())


@pytest.mark.float32
@pytest.mark.parametrize(
    ("variables", "objective"), [({"A": "first"}, "collapsed"), (BOTH, "meanfield"), ({"B": "noise"}, "collapsed")]
)
def test_an_observed_node_stays_at_its_labels_in_what_is_reported(variables: dict[str, str], objective: str) -> None:
    """Also where clusters do not show it at all."""
    data = samples()
    noise = np.random.default_rng(0).integers(0, 2, 60)
    factors, levels = {**data.factors, "noise": noise}, {**data.factor_levels, "noise": ("0", "1")}
    data = dataclasses.replace(data, factors=factors, factor_levels=levels)
    observe = ObserveConfig(variables, use="training")
    run = Run(data, settings(observe=observe, objective=objective, pretraining__epochs=10, graph__start_steps=500))
    run.train()
    result = run.finish()
    arrays = result.arrays
    assert arrays is not None
    is_training = run.split == "train"
    outcomes = arrays.responsibilities.reshape(-1, 2, 2)
    for node, variable in variables.items():
        given = outcomes.sum(2 if node == "A" else 1)
        other = 1 - data.factors[variable][is_training]
        assert (given[np.flatnonzero(is_training), other] == 0).all()
        assert ((given[~is_training] > 0) & (given[~is_training] < 1)).any() or variable != "noise"
        share = np.exp(arrays.graph.log_joint).sum(1 if node == "A" else 0)
        expected = np.bincount(data.factors[variable][is_training], minlength=2) / is_training.sum()
        np.testing.assert_allclose(share, expected, atol=0.03)
    assert arrays.node_labels is not None
    new = result.predict({name: values[:5] for name, values in data.modalities.items()}, draws=5)
    assert new.sizes["sample"] == 5, "without labels"


@pytest.mark.float32
def test_without_training_by_labels_they_only_name() -> None:
    run = Run(samples(), observing({"A": "first"}))
    run.train()
    assert run._observed().cells is None
