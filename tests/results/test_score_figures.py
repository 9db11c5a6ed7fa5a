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
from matplotlib.patches import Rectangle
from scipy.stats import binomtest

from causalpima.inference.analyses.scores import Found, Known, scores_of
from causalpima.inference.findings.arrays import CurveArrays, FitArrays
from causalpima.inference.findings.cell_figures import cells_of
from causalpima.inference.findings.drawing import figure_style
from causalpima.inference.findings.explained_variance import VarianceExplained
from causalpima.inference.reporting.figures.files import write_score_figures
from causalpima.inference.reporting.figures.fit import draw_reliability, wilson_interval
from causalpima.inference.reporting.figures.graph import draw_conditionals
from causalpima.inference.reporting.figures.nodes import draw_explained, draw_node_factors, draw_outcomes, node_averages


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


def test_every_node_has_a_figure_of_its_outcomes(fit: FitArrays) -> None:
    with figure_style():
        curves, images = dict(draw_outcomes(fit, "stress µ")), dict(draw_outcomes(fit, "picture"))
    assert list(curves) == list(images) == ["type", "response"]
    left, right = curves["response"].axes
    assert [ax.get_title(loc="left") for ax in (left, right)] == ["outcomes", "difference from low"]
    assert [len(ax.lines) for ax in (left, right)] == [3, 3]  # changes have a line at zero
    assert (left.get_ylabel(), right.get_ylabel()) == ("stress µ (MPa)", "change (MPa)")
    titles = [ax.get_title(loc="left") for ax in images["response"].axes if ax.get_visible()]
    assert titles == ["response = low", "response = mid", "response = high", "mid − low", "high − low"]
    heading = images["type"].texts[0].get_text()
    assert heading == "picture: what changes with type (25 % of the variance)"


def test_figures_of_all_nodes_have_one_scale(fit: FitArrays) -> None:
    with figure_style():
        figures = dict(draw_outcomes(fit, "stress µ"))
        sides = [[ax.get_ylim() for ax in figure.axes] for figure in figures.values()]
    assert sides[0] == sides[1]
    changes = [np.diff(np.asarray(line.get_ydata())[:1]) for line in figures["type"].axes[1].lines]
    assert len(changes) == 2
    modality, log_joint = fit.modalities["stress µ"], fit.graph.log_joint
    averages = [node_averages(modality, log_joint, node) for node in range(2)]
    extremes = np.concatenate([(table[1:] - table[0]).reshape(-1) for table in averages])
    low, high = sides[0][1]
    assert low < min(0.0, extremes.min())
    assert high > max(0.0, extremes.max())


def test_nothing_is_drawn_where_no_curve_of_a_cell_was_measured(fit: FitArrays) -> None:
    modality = fit.modalities["stress µ"]
    examples = np.broadcast_to(modality.decoded[:, None], (6, 2, *modality.decoded.shape[1:])).copy()
    examples[4, :, 3:] = np.nan  # the cell (härter, mid)
    curves = CurveArrays(examples, modality.decoded - 1.0, modality.decoded + 1.0)
    gappy = replace(fit, modalities={"c": replace(modality, curves=curves)}, variance_explained={})
    with figure_style():
        left, right = dict(draw_outcomes(gappy, "c"))["type"].axes
    soft, hard = (np.isfinite(line.get_ydata()) for line in left.lines)
    assert soft.all()
    np.testing.assert_array_equal(hard, np.arange(6) < 3)
    np.testing.assert_array_equal(np.isfinite(right.lines[0].get_ydata()), np.arange(6) < 3)
    last = [float(np.nanmax(np.asarray(band.get_paths()[0].vertices)[:, 0])) for band in left.collections]
    positions = np.asarray(left.lines[0].get_xdata())
    assert last == pytest.approx([positions[5], positions[2]])
    assert left.get_xlim() == right.get_xlim()


def test_vectors_are_dots_with_intervals_and_categories_have_no_averages(fit: FitArrays) -> None:
    """No bars: where an axis does not start at zero, their lengths compare nothing."""
    codes = replace(fit.modalities["picture"], likelihood="categorical")
    assert dict(draw_outcomes(replace(fit, modalities={"picture": codes}), "picture")) == {}
    vector = replace(fit.modalities["stress µ"], kind="vector", curves=None, axis=None)
    vector = replace(vector, interval=(vector.decoded - 0.25, vector.decoded + 0.5))
    with figure_style():
        figure = dict(draw_outcomes(replace(fit, modalities={"v": vector}, variance_explained={}), "v"))["response"]
    left, right = figure.axes[:2]
    assert not [patch for ax in (left, right) for patch in ax.patches if isinstance(patch, Rectangle)]
    averages = node_averages(vector, fit.graph.log_joint, 1)
    dots = [np.asarray(line.get_ydata()) for line in left.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(dots, averages)
    np.testing.assert_allclose(
        [np.asarray(line.get_ydata()) for line in right.lines if line.get_marker() == "o"], averages[1:] - averages[:1]
    )
    ends = np.array([[np.asarray(path.vertices)[:, 1] for path in lines.get_paths()] for lines in left.collections])
    # A constant distance stays one on the scale of the transform, on which is averaged.
    assert (ends[..., 0] < averages).all()
    assert (ends[..., 1] > averages).all()
    assert not right.collections


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
            curves, conditionals = dict(draw_outcomes(drawn, "stress µ")), draw_conditionals(drawn)
            assert explained is not None
            assert [label.get_text() for label in explained.axes[0].get_yticklabels()][:2] == rows
            assert [label.get_text() for label in scored.axes[0].get_yticklabels()] == rows
            headings = [figure.texts[0].get_text().split("with ")[1].split(" (25")[0] for figure in curves.values()]
            assert [heading.split(" (50")[0] for heading in headings] == rows
            assert {f"given {row}" for row in rows} <= set(texts(conditionals))
        unnamed = dict(draw_outcomes(fit, "picture"))["type"]
        named = dict(draw_outcomes(part, "picture"))["type"]
    assert any("unnamed" in text.get_text() for text in unnamed.texts)
    assert not any("unnamed" in text.get_text() for text in named.texts)


def test_intervals_of_shares_are_wilsons() -> None:
    lower, upper = wilson_interval(np.array([0.8, 1.0]), np.array([20.0, 7.0]))
    for index, (k, n) in enumerate([(16, 20), (7, 7)]):
        known = binomtest(k, n).proportion_ci(method="wilson")
        np.testing.assert_allclose([lower[index], upper[index]], [known.low, known.high], atol=1e-6)
