"""Figures of scores and of nodes: what is drawn, and averages over the other nodes against sums written out."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fit_arrays_example import example_fit
from matplotlib.figure import Figure
from scipy.stats import binomtest

from inference.evaluation.scores import Found, Known, scores_of
from inference.evaluation.variance_explained import VarianceExplained
from inference.results.arrays import FitArrays
from inference.results.figures import write_score_figures
from inference.results.figures.cells import cells_of
from inference.results.figures.conditionals import draw_conditionals
from inference.results.figures.explained import draw_explained
from inference.results.figures.node_factors import draw_node_factors
from inference.results.figures.reliability import draw_reliability, wilson_interval
from inference.results.figures.style import figure_style
from inference.results.figures.traversal import draw_traversal, node_averages


@pytest.fixture
def fit() -> FitArrays:
    shares = {
        name: VarianceExplained(np.array([0.25, 0.5]), np.array([0.1, 0.2]), 0.8) for name in example_fit().modalities
    }
    return example_fit(variance_explained=shares)


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for ax in figure.axes for text in ax.texts]


@pytest.mark.parametrize("node", [0, 1])
@pytest.mark.parametrize("transform", ["identity", "asinh"])
def test_averages_over_the_other_nodes_are_written_out(fit: FitArrays, node: int, transform: str) -> None:
    modality = replace(fit.modalities["stress µ"], transform=transform, knee=0.5)
    joint = np.exp(fit.graph.log_joint)
    found = node_averages(modality, fit.graph.log_joint + 3.0, node)

    def forward(x: np.ndarray) -> np.ndarray:
        return np.arcsinh(x / 0.5) if transform == "asinh" else x

    expected = np.zeros(found.shape)
    for cell, outcomes in enumerate(product(range(2), range(3))):
        weight = joint.sum(axis=node)[outcomes[1 - node]]
        expected[outcomes[node]] += weight * forward(modality.decoded[cell])
    np.testing.assert_allclose(forward(found), expected)


def test_a_node_that_changes_nothing_has_no_differences(fit: FitArrays) -> None:
    decoded = fit.modalities["stress µ"].decoded.reshape(2, 3, 6)
    alike = replace(fit.modalities["stress µ"], decoded=np.broadcast_to(decoded[:1], (2, 3, 6)).reshape(6, 6))
    averages = node_averages(alike, fit.graph.log_joint, 0)
    np.testing.assert_allclose(averages[0], averages[1])
    assert np.ptp(node_averages(alike, fit.graph.log_joint, 1), axis=0).min() > 0


def test_traversal_has_a_row_per_node(fit: FitArrays) -> None:
    with figure_style():
        curves = draw_traversal(fit, "stress µ")
        images = draw_traversal(fit, "picture")
    assert curves is not None
    assert images is not None
    assert [ax.get_title(loc="left") for ax in curves.axes] == ["type", "type: change", "response", "response: change"]
    assert [len(ax.lines) for ax in curves.axes] == [2, 2, 3, 3]  # changes have a line at zero
    assert curves.axes[0].get_ylabel() == "stress µ (MPa)"
    titles = [ax.get_title(loc="left") for ax in images.axes if ax.get_visible()]
    assert titles[:3] == ["type = soft", "type = härter", "härter − soft"]
    assert titles[3:] == ["response = low", "response = mid", "response = high", "mid − low", "high − low"]


def test_what_has_no_average_has_no_traversal(fit: FitArrays) -> None:
    codes = replace(fit.modalities["picture"], likelihood="categorical")
    assert draw_traversal(replace(fit, modalities={"picture": codes}), "picture") is None
    one = replace(
        fit.graph, node_names=("type",), outcome_names=(tuple("abcdef"),), log_joint=fit.graph.log_joint.reshape(-1)
    )
    assert draw_traversal(replace(fit, graph=one), "picture") is None


def test_explained_variance_is_written_with_chance_and_ceiling(fit: FitArrays) -> None:
    with figure_style():
        figure = draw_explained(fit)
    assert figure is not None
    assert texts(figure) == ["25 % (10 %)", "25 % (10 %)", "50 % (20 %)", "50 % (20 %)", "80 %", "80 %"]
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["type", "response", "all cells"]
    assert draw_explained(replace(fit, variance_explained={})) is None


def test_scores_are_drawn(fit: FitArrays, tmp_path: Path) -> None:
    scores = scores_of(Found.of(fit), Known.of(fit))
    with figure_style():
        figure = draw_node_factors(scores)
        draw_reliability(scores)
    accuracy = np.array(scores["node_factor_accuracy"])
    assert texts(figure)[4:] == [f"{value:.2f}" for value in accuracy.reshape(-1)]
    assert sum(len(ax.patches) for ax in figure.axes) == 2 * _n_telling(scores)
    written = write_score_figures(scores, tmp_path / "new")
    assert [path.name for path in written] == ["node_factors.png", "reliability.png"]
    assert write_score_figures({"variance_explained": {}}, tmp_path / "none") == []


def _n_telling(scores: dict[str, Any]) -> int:
    chance = scores["random_labelling_baseline"]["node_accuracy"]
    return sum(1 - value < value - chance[factor] for factor, value in scores["node_accuracy"].items())


@pytest.mark.parametrize(("accuracy", "n_outlined"), [(0.99, 2), (0.8, 0)])
def test_only_what_tells_more_than_chance_is_outlined(fit: FitArrays, accuracy: float, n_outlined: int) -> None:
    scores = scores_of(Found.of(fit), Known.of(fit))
    factors = list(scores["assignment"])
    scores["assignment"] = dict(zip(factors, scores["node_names"], strict=True))
    scores["node_accuracy"] = dict.fromkeys(factors, accuracy)
    scores["random_labelling_baseline"] = {"mean": 0.7, "worst": 0.6, "node_accuracy": dict.fromkeys(factors, 0.7)}
    with figure_style():
        figure = draw_node_factors(scores)
    assert [len(ax.patches) for ax in figure.axes] == [n_outlined] * 2


def test_nodes_that_are_not_identified_say_so(fit: FitArrays) -> None:
    part = replace(fit, identifiability={"identified_nodes": ["type"], "is_named": False})
    whole = replace(fit, identifiability={"identified_nodes": ["type", "response"], "is_named": True})
    assert cells_of(fit).nodes == "coordinates (type, response), unnamed"
    assert cells_of(part).nodes == "(type, response (not identified))"
    assert cells_of(whole).nodes == "(type, response)"
    with figure_style():
        for drawn, rows in ((part, ["type", "response (not identified)"]), (whole, ["type", "response"])):
            explained, scored = (
                draw_explained(drawn),
                draw_node_factors(scores_of(Found.of(fit), Known.of(fit)), drawn.identifiability),
            )
            curves, conditionals = draw_traversal(drawn, "stress µ"), draw_conditionals(drawn)
            assert explained is not None
            assert curves is not None
            assert [label.get_text() for label in explained.axes[0].get_yticklabels()][:2] == rows
            assert [label.get_text() for label in scored.axes[0].get_yticklabels()] == rows
            assert [ax.get_title(loc="left") for ax in curves.axes[::2]] == rows
            assert {f"given {row}" for row in rows} <= set(texts(conditionals))
        images = draw_traversal(part, "picture")
        unnamed = draw_traversal(fit, "picture")
    assert images is not None
    assert unnamed is not None
    titles = {ax.get_title(loc="left") for ax in images.axes}
    assert {"type = soft", "response = low\n(not identified)"} <= titles
    assert any("unnamed" in text.get_text() for text in unnamed.texts)
    assert not any("unnamed" in text.get_text() for text in images.texts)


def test_intervals_of_shares_are_wilsons() -> None:
    lower, upper = wilson_interval(np.array([0.8, 1.0]), np.array([20.0, 7.0]))
    for index, (k, n) in enumerate([(16, 20), (7, 7)]):
        known = binomtest(k, n).proportion_ci(method="wilson")
        np.testing.assert_allclose([lower[index], upper[index]], [known.low, known.high], atol=1e-6)
