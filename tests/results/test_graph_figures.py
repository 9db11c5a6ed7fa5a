from __future__ import annotations

from dataclasses import replace
from itertools import product

import hypothesis.strategies as st
import numpy as np
import pytest
from circle_like_fit import circle_like_fit, texts
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays
from matplotlib.patches import Ellipse, FancyArrowPatch

from inference.results.arrays import FitArrays
from inference.results.figures.conditionals import draw_conditionals, pairwise_conditional
from inference.results.figures.graph import draw_graph


def _with_strength(strength: np.ndarray) -> FitArrays:
    fit = circle_like_fit(20, (2,) * len(strength))
    return replace(fit, graph=replace(fit.graph, edge_strength=strength))


def test_edges_run_from_row_to_column() -> None:
    #    N1 ──► N3    N4 ──► N2: numbers stand nearer to the cause
    strength = np.zeros((4, 4))
    strength[0, 2], strength[3, 1] = 0.9, 0.7
    ax = draw_graph(_with_strength(strength)).axes[0]
    place = {text.get_text().split("\n")[0]: np.array(text.get_position()) for text in ax.texts}
    for number, cause, effect in (("0.90", "N1", "N3"), ("0.70", "N4", "N2")):
        to_cause, to_effect = (np.linalg.norm(place[number] - place[node]) for node in (cause, effect))
        assert to_cause < to_effect
        np.testing.assert_allclose(to_cause + to_effect, np.linalg.norm(place[cause] - place[effect]))


def test_weak_edges_are_dashed_and_faint_ones_left_out() -> None:
    strength = np.array([[0, 0.8, 0.3], [0, 0, 0.04], [0, 0, 0]])
    figure = draw_graph(_with_strength(strength))
    arrows = [patch for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]
    assert [arrow.get_linestyle() in ("-", "solid") for arrow in arrows] == [True, False]
    assert arrows[0].get_linewidth() > arrows[1].get_linewidth()
    assert "one of several labellings" in " ".join(texts(figure).split())


@pytest.mark.parametrize(("named", "joined"), [(True, "Arrows run from cause to effect"), (False, "Lines join nodes")])
def test_only_nodes_with_a_meaning_have_causes(named: bool, joined: str) -> None:
    told = " ".join(texts(draw_graph(_with_strength(np.array([[0, 0.9], [0, 0]])), named)).split())
    assert joined in told
    assert ("several labellings" in told) != named


def test_below_a_strength_stands_how_much_the_nodes_share() -> None:
    fit = _with_strength(np.array([[0, 0.98, 0.3], [0, 0, 0.97], [0, 0, 0]]))
    flip = np.array([[0.89, 0.11], [0.11, 0.89]]) / 2  # a channel of 1 - H(0.11) = 0.5001 bit
    joint = np.einsum("ab,c->abc", flip, [0.5, 0.5])
    figure = draw_graph(replace(fit, graph=replace(fit.graph, log_joint=np.log(joint))))
    found = {text.get_text() for text in figure.axes[0].texts}
    assert {"0.98\n0.50 bit", "0.97\n< 0.01 bit", "0.30"} <= found
    assert "nothing of how strong" in " ".join(texts(figure).split())


@pytest.mark.parametrize(
    ("strength", "expected"),
    [
        (np.array([[0.0, 0.5], [0.0, 0.0]]), "No edge is above 0.5."),
        (np.full((2, 2), np.nan), "Edge strengths are not finite."),
        (np.zeros((1, 1)), "One node has no edges."),
    ],
)
def test_a_graph_without_edges_says_so(strength: np.ndarray, expected: str) -> None:
    assert expected in texts(draw_graph(_with_strength(strength)))


@pytest.mark.parametrize("n_nodes", range(1, 11))
def test_nodes_do_not_overlap(n_nodes: int) -> None:
    fit = circle_like_fit(20, (2,) * n_nodes, kinds={})
    names = tuple(f"node with a long name {i}" for i in range(n_nodes))
    ax = draw_graph(replace(fit, graph=replace(fit.graph, node_names=names))).axes[0]
    shapes = [patch for patch in ax.patches if isinstance(patch, Ellipse)]
    assert len(shapes) == n_nodes
    for a, b in product(shapes, shapes):
        apart = (np.array(a.center) - np.array(b.center)) / (a.width, a.height)
        assert a is b or np.linalg.norm(apart) > 1.0


@given(
    data=st.data(),
    outcomes=st.lists(st.integers(2, 4), min_size=2, max_size=4),
)
@settings(max_examples=25)
def test_conditionals_equal_counting_over_the_joint(data: st.DataObject, outcomes: list[int]) -> None:
    log_joint = data.draw(arrays(np.float64, tuple(outcomes), elements=st.floats(-20, 0)))
    node, given_ = data.draw(st.permutations(range(len(outcomes))))[:2]
    expected = np.zeros((outcomes[given_], outcomes[node]))
    for index in product(*map(range, outcomes)):
        expected[index[given_], index[node]] += np.exp(log_joint[index])
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(pairwise_conditional(log_joint, node, given_), expected, rtol=1e-10)
    marginal = pairwise_conditional(log_joint, node, None)
    np.testing.assert_allclose(marginal.sum(), 1.0)


def test_conditioning_on_what_never_happens_is_blank() -> None:
    log_joint = np.log(np.array([[0.25, 0.75], [1e-300, 1e-300]])) * np.array([[1.0], [5.0]])
    table = pairwise_conditional(log_joint, 1, 0)
    np.testing.assert_allclose(table, [[0.25, 0.75], [np.nan, np.nan]])


def test_every_pair_of_nodes_has_a_block_with_numbers() -> None:
    fit = circle_like_fit(20, (2, 3))
    (ax,) = draw_conditionals(fit).axes
    table = pairwise_conditional(fit.graph.log_joint, 0, 1)
    numbers = [text.get_text() for text in ax.texts]
    assert len(ax.images) == 2 + 2
    assert all(f"{value:.2f}" in numbers for value in table.ravel())
    assert {"given N1", "given N2"} <= set(numbers)
