"""Circles in several modalities: what each shows, what it does not, and the ceiling."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2, norm

from causalpima.examples.circle_truths import Truth, true_adjacency, true_joint
from causalpima.examples.circle_views import (
    EXPERIMENTS,
    MASKS,
    TIME,
    WAVELENGTH,
    Views,
    circles_views,
    state_means,
    view_log_likelihood,
)
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.validation import validate

VIEWS: list[Views] = ["overlapping", "nested", "two"]
TRUTHS: list[Truth] = ["independent", "chain", "fork", "collider", "edge"]
STATES = {
    "silhouette": ("disc_radius", "disc_offset"),
    "spectrum": ("peak", "height"),
    "response": ("plateau", "log_rate"),
}
SCALES = {"silhouette": (0.5, 0.7), "spectrum": (14.0, 0.06), "response": (0.15, 0.2)}
NODES = ("hue", "radius", "shift")


def states_of(data: MultimodalData) -> dict[str, np.ndarray]:
    return {name: np.stack([data.measurements[part] for part in STATES[name]], axis=1) for name in data.modalities}


@pytest.mark.parametrize("views", VIEWS)
def test_data_keep_the_contract(views: Views) -> None:
    data = circles_views(60, seed=3, views=views)
    validate(data)
    assert list(data.modalities) == list(MASKS[views])
    assert data.modalities["silhouette"].shape == (60, 28, 28, 1)
    assert data.modalities["spectrum"].shape == (60, 61)
    assert all(present.all() for present in data.present.values())
    np.testing.assert_array_equal(data.true_joint, true_joint())


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_declare_the_mask_of_their_views(name: str) -> None:
    experiment = EXPERIMENTS[name]
    made = experiment.make(**{**experiment.options, "n_samples": 4})
    assert made.name == name
    assert experiment.config.mask == MASKS[experiment.options.get("views", "overlapping")]
    assert set(experiment.config.modality) == set(made.modalities)


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("rare", [False, True])
def test_cells_are_as_frequent_as_the_joint_says(truth: Truth, rare: bool) -> None:
    data = circles_views(seed=11, truth=truth, rare=rare)
    counts = np.zeros((2, 2, 2))
    np.add.at(counts, tuple(data.factors.values()), 1)
    expected = 4096 * true_joint(truth, rare)
    assert ((counts - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-4, df=7)
    np.testing.assert_array_equal(data.true_adjacency, true_adjacency(truth))


def test_seed_decides_and_first_samples_do_not_depend_on_their_number() -> None:
    few, many, other = circles_views(20, seed=1), circles_views(90, seed=1), circles_views(20, seed=2)
    for name in few.modalities:
        np.testing.assert_array_equal(few.modalities[name], many.modalities[name][:20])
        assert not np.array_equal(few.modalities[name], other.modalities[name])


def test_cells_and_shared_views_do_not_depend_on_the_choice_of_views() -> None:
    all_three, two = circles_views(50, seed=4), circles_views(50, seed=4, views="two")
    np.testing.assert_array_equal(all_three.factors["hue"], two.factors["hue"])
    for name in two.modalities:
        np.testing.assert_array_equal(all_three.modalities[name], two.modalities[name])


@pytest.mark.parametrize("views", VIEWS)
def test_states_are_normal_around_the_means_of_their_cells(views: Views) -> None:
    data = circles_views(seed=5, views=views)
    cells = tuple(data.factors.values())
    for name, state in states_of(data).items():
        standardised = (state - state_means(name, MASKS[views][name])[cells]) / SCALES[name]
        assert np.all(np.abs(standardised.mean(0)) < 4 / np.sqrt(4096))
        squares = (standardised**2).sum(0)
        assert np.all((chi2.ppf(5e-5, 4096) < squares) & (squares < chi2.ppf(1 - 5e-5, 4096)))
        assert abs(np.corrcoef(standardised.T)[0, 1]) < 4 / np.sqrt(4096)


@pytest.mark.parametrize(("views", "name"), [(views, name) for views in VIEWS for name in MASKS[views]])
def test_a_modality_sees_its_nodes_and_no_others(views: Views, name: str) -> None:
    nodes = MASKS[views][name]
    means = state_means(name, nodes)
    by_visible: dict[tuple[int, ...], np.ndarray] = {}
    for cell in product((0, 1), repeat=3):
        visible = tuple(code for node, code in zip(NODES, cell, strict=True) if node in nodes)
        np.testing.assert_array_equal(by_visible.setdefault(visible, means[cell]), means[cell])
    assert len(by_visible) == 2 ** len(nodes)
    distances = [
        np.linalg.norm((a - b) / SCALES[name])
        for i, a in enumerate(by_visible.values())
        for b in list(by_visible.values())[:i]
    ]
    assert min(distances) > 3


@pytest.mark.parametrize("name", ["silhouette", "spectrum", "response"])
def test_effects_of_the_two_nodes_do_not_add(name: str) -> None:
    nodes = MASKS["overlapping"][name]
    index = [NODES.index(node) for node in nodes]
    hidden = ({0, 1, 2} - set(index)).pop()
    square = state_means(name, nodes).take(0, axis=hidden) / SCALES[name]
    interaction = square[0, 0] - square[0, 1] - square[1, 0] + square[1, 1]
    assert np.linalg.norm(interaction) > 4


def test_modalities_show_their_states() -> None:
    data = circles_views(400, seed=6)
    image, m = data.modalities["silhouette"][..., 0], data.measurements
    area = image.sum((1, 2))
    np.testing.assert_allclose(area, np.pi * (m["disc_radius"] ** 2 + 1 / 12), rtol=0.02)  # the rim is a pixel wide
    np.testing.assert_allclose(image.sum(1) @ (np.arange(28) - 13.5) / area, m["disc_offset"], atol=0.03)
    peak = np.exp(-0.5 * ((WAVELENGTH - m["peak"][:, None]) / 30) ** 2)
    assert_white(data.modalities["spectrum"] - m["height"][:, None] * peak)
    rise = 1 - np.exp(-np.exp(m["log_rate"])[:, None] * TIME)
    assert_white(data.modalities["response"] - m["plateau"][:, None] * rise)


def assert_white(noise: np.ndarray) -> None:
    standardised = noise / 0.05
    assert abs(standardised.mean()) < 4 / np.sqrt(noise.size)
    assert abs((standardised**2).mean() - 1) < 4 * np.sqrt(2 / noise.size)
    assert abs((standardised[:, 1:] * standardised[:, :-1]).mean()) < 4 / np.sqrt(noise.size)


def bayes_hits(data: MultimodalData, joint: np.ndarray, mask: dict[str, tuple[str, ...]]) -> np.ndarray:
    """Bayes' rule written out, cell by cell, with densities."""
    states = states_of(data)
    densities = [
        joint[cell]
        * np.prod(
            [norm.pdf(states[m], state_means(m, nodes)[cell], SCALES[m]).prod(1) for m, nodes in mask.items()], axis=0
        )
        for cell in product((0, 1), repeat=3)
    ]
    hits: np.ndarray = np.argmax(densities, axis=0) == np.ravel_multi_index(tuple(data.factors.values()), (2, 2, 2))
    return hits


@pytest.mark.parametrize("views", VIEWS)
def test_ceiling_equals_bayes_rule_sample_by_sample(views: Views) -> None:
    data = circles_views(2000, seed=9, truth="collider", views=views)
    hits = bayes_hits(data, true_joint("collider"), dict(MASKS[views]))
    assert data.bayes_ceiling == hits.mean() < 1


def test_ceiling_is_the_expected_posterior_of_the_best_cell() -> None:
    """E[1(best cell is the true one)] = E[max posterior], so both means agree within their standard errors."""
    data = circles_views(20000, seed=10, truth="chain")
    log_posterior = (np.log(true_joint("chain")) + view_log_likelihood(states_of(data), MASKS["overlapping"])).reshape(
        -1, 8
    )
    best = 1 / np.exp(log_posterior - log_posterior.max(1, keepdims=True)).sum(1)
    assert data.bayes_ceiling is not None
    assert abs(data.bayes_ceiling - best.mean()) < 4 * np.sqrt(best.mean() * (1 - best.mean()) / 20000)


@pytest.mark.parametrize("truth", TRUTHS)
def test_fused_views_tell_what_one_alone_confuses(truth: Truth) -> None:
    data = circles_views(8000, seed=2, truth=truth)
    assert data.bayes_ceiling is not None
    assert data.bayes_ceiling > 0.993
    for name, nodes in MASKS["overlapping"].items():
        log_posterior = np.log(true_joint(truth)) + view_log_likelihood({name: states_of(data)[name]}, {name: nodes})
        hidden = tuple(1 + i for i, node in enumerate(NODES) if node not in nodes)
        visible = np.exp(log_posterior).sum(hidden).reshape(-1, 4).argmax(1)
        alone = np.mean(visible == 2 * data.factors[nodes[0]] + data.factors[nodes[1]])
        assert 0.93 < alone < 0.98


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples: expected at least 1, got 0"),
        ({"seed": -1}, "seed: expected a non-negative integer, got -1"),
        ({"truth": "tree"}, "truth: expected one of independent, chain, fork, collider, edge, got 'tree'"),
        ({"views": "one"}, "views: expected one of overlapping, nested, two, got 'one'"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        circles_views(**arguments)  # type: ignore[arg-type]
