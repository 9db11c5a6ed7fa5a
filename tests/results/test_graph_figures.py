from __future__ import annotations

from itertools import product
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from circle_like_fit import circle_like_fit, texts
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays
from matplotlib.patches import ArrowStyle, Ellipse, FancyArrowPatch

from inference.results.edge_findings import strengths_in_words
from inference.results.figures.conditionals import draw_conditionals, pairwise_conditional
from inference.results.figures.graph import draw_graph
from inference.results.mutual_information import mutual_information


def _with_strength(strength: np.ndarray, **changes: Any) -> dict[str, Any]:
    """A summary of unnamed nodes with these soft strengths."""
    nodes = [f"N{i + 1}" for i in range(len(strength))]
    return {"status": "ok", "graph": {"node_names": nodes, "edge_strength": strength.tolist()}, **changes}


def _with_class(cpdag: list[list[int]], gap: float = 7.9) -> dict[str, Any]:
    """A summary of identified nodes: every strength is 1, the class says otherwise."""
    found = _with_strength(np.triu(np.ones((len(cpdag),) * 2), 1), identifiability={"is_named": True})
    bits = (np.log(2) * np.arange(len(cpdag) ** 2).reshape(len(cpdag), -1) / 10).tolist()
    names = found["graph"]["node_names"]
    entry = {"cpdag": cpdag, "gap_nats": gap, "node_names": names}
    found["graph"] |= {"equivalence_class": entry, "mutual_information": bits}
    return found


def _drawn(summary: dict[str, Any]) -> tuple[list[FancyArrowPatch], str]:
    figure = draw_graph(summary)
    edges = [patch for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]
    return edges, " ".join(texts(figure).split())


def _has_head(edge: FancyArrowPatch) -> bool:
    return isinstance(edge.get_arrowstyle(), ArrowStyle.CurveFilledB)


def test_soft_strengths_have_no_heads_and_one_line_for_both_ways() -> None:
    edges, told = _drawn(_with_strength(np.array([[0, 0.9, 0], [0.7, 0, 0], [0.8, 0, 0]])))
    assert [_has_head(edge) for edge in edges] == [False, False]
    assert "0.90" in told
    assert "0.70" not in told
    assert "directions are not identified" in told


def test_named_nodes_without_a_class_have_lines() -> None:
    edges, told = _drawn(_with_strength(np.array([[0, 0.9], [0, 0]]), identifiability={"is_named": True}))
    assert [_has_head(edge) for edge in edges] == [False]
    assert "directions are not identified" in told
    assert "cause" not in told


def test_an_edge_of_a_class_has_a_head_only_where_it_is_compelled() -> None:
    edges, told = _drawn(_with_class([[0, 1, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [0, 1, 0, 0]]))
    ends = [(_has_head(edge), np.asarray(edge.get_path().vertices)[0]) for edge in edges]
    assert [has_head for has_head, *_ in ends] == [True, False, True]
    place = {
        text.get_text(): np.array(text.get_position()) for text in draw_graph(_with_class([[0] * 4] * 4)).axes[0].texts
    }
    assert np.linalg.norm(ends[2][1] - place["N3"]) < np.linalg.norm(ends[2][1] - place["N2"])
    assert "0.10 bit" in told
    assert "probable, 7.9 nats ahead of the next" in told
    assert "no hidden common cause and no selection" in told
    assert "A line: direction not identified." in told
    assert "1.00" not in told


def test_a_class_without_edges_says_so() -> None:
    edges, told = _drawn(_with_class([[0, 0], [0, 0]], gap=1.2))
    assert not edges
    assert "not decided, 1.2 nats ahead of the next" in told
    assert "No edge." in told


@pytest.mark.parametrize(("weight", "is_directed"), [(0.99, True), (0.7, False)])
def test_arrows_of_interventions_need_their_evidence(weight: float, is_directed: bool) -> None:
    details = {
        "targets": {"do": "N1"},
        "graph": [[0, 1], [0, 0]],
        "edge_probability": [[0, weight], [1 - weight, 0]],
        "graph_gap": 12.0,
        "n_remaining": 1,
        "n_searched": {"graphs": 3},
    }
    summary = _with_class([[0, 1], [1, 0]]) | {"labelling": {"details": details}, "nodes": {"N1": 2, "N2": 2}}
    edges, told = _drawn(summary)
    assert [_has_head(edge) for edge in edges] == [is_directed]
    assert "clear, 12.0 nats ahead" in told
    assert ("leave the direction open" in told) != is_directed


def test_weak_edges_are_dashed_and_faint_ones_left_out() -> None:
    strength = np.array([[0, 0.8, 0.3], [0, 0, 0.04], [0, 0, 0]])
    figure = draw_graph(_with_strength(strength))
    arrows = [patch for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]
    assert [arrow.get_linestyle() in ("-", "solid") for arrow in arrows] == [True, False]
    assert arrows[0].get_linewidth() > arrows[1].get_linewidth()
    assert "one of several labellings" in " ".join(texts(figure).split())


def test_below_a_strength_stands_how_much_the_nodes_share() -> None:
    summary = _with_strength(np.array([[0, 0.98, 0.3], [0, 0, 0.97], [0, 0, 0]]))
    flip = np.array([[0.89, 0.11], [0.11, 0.89]]) / 2  # a channel of 1 - H(0.11) = 0.5001 bit
    joint = np.einsum("ab,c->abc", flip, [0.5, 0.5])
    summary["graph"]["mutual_information"] = mutual_information(np.log(joint)).tolist()
    figure = draw_graph(summary)
    found = {text.get_text() for text in figure.axes[0].texts}
    assert {"0.98\n0.50 bit", "0.97\n< 0.01 bit", "0.30"} <= found
    assert "nothing of how strong" in " ".join(texts(figure).split())


@pytest.mark.parametrize(
    ("strength", "expected"),
    [
        (np.array([[0.0, 0.5], [0.0, 0.0]]), "No edge is above 0.5."),
        (np.full((2, 2), np.nan), "No graph in the model: p(N) has a weight of its own for every cell."),
        (np.zeros((1, 1)), "One node has no edges."),
    ],
)
def test_a_graph_without_edges_says_so(strength: np.ndarray, expected: str) -> None:
    assert expected in " ".join(texts(draw_graph(_with_strength(strength))).split())


@pytest.mark.parametrize("n_nodes", range(1, 11))
def test_nodes_do_not_overlap(n_nodes: int) -> None:
    summary = _with_strength(np.triu(np.full((n_nodes, n_nodes), 0.9), 1))
    summary["graph"]["node_names"] = [f"node with a long name {i}" for i in range(n_nodes)]
    ax = draw_graph(summary).axes[0]
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


def test_a_hard_graph_is_not_called_soft() -> None:
    hard, soft = ({"temperature": temperature} for temperature in (0.0, 0.05))
    assert {strengths_in_words(hard), strengths_in_words(hard, " above 0.5")} == {
        "edges of the trained model's hard graph"
    }
    assert strengths_in_words(soft, " above 0.5") == "soft strengths above 0.5 of the trained model"
