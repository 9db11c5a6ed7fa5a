from __future__ import annotations

from itertools import product
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from circle_like_fit import circle_like_fit, texts
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays
from matplotlib.figure import Figure
from matplotlib.patches import ArrowStyle, Ellipse, FancyArrowPatch

from causalpima.inference.reporting.figures.graph import draw_conditionals, draw_graph, pairwise_conditional


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


def _figure(summary: dict[str, Any]) -> Figure:
    figure = draw_graph(summary)
    assert figure is not None
    return figure


def _drawn(summary: dict[str, Any]) -> tuple[list[FancyArrowPatch], str]:
    figure = _figure(summary)
    edges = [patch for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]
    return edges, " ".join(texts(figure).split())


def _has_head(edge: FancyArrowPatch) -> bool:
    return isinstance(edge.get_arrowstyle(), ArrowStyle.CurveFilledB)


@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize("strength", [np.array([[0, 1.0], [0, 0]]), np.full((2, 2), np.nan), np.zeros((1, 1))])
def test_soft_strengths_draw_nothing(strength: np.ndarray, is_named: bool) -> None:
    """A strength of 1.00 reads as a probability, and nodes side by side as independent."""
    assert draw_graph(_with_strength(strength, identifiability={"is_named": is_named})) is None


def test_an_edge_of_a_class_has_a_head_only_where_it_is_compelled() -> None:
    edges, told = _drawn(_with_class([[0, 1, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [0, 1, 0, 0]]))
    ends = [(_has_head(edge), np.asarray(edge.get_path().vertices)[0]) for edge in edges]
    assert [has_head for has_head, *_ in ends] == [True, False, True]
    place = {
        text.get_text(): np.array(text.get_position()) for text in _figure(_with_class([[0] * 4] * 4)).axes[0].texts
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


def test_edges_that_the_class_lacks_are_dashed_and_as_thick_as_they_are_probable() -> None:
    summary = _with_class([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    joined = [[0, 0.9, 0.3], [0.9, 0, 0.04], [0.3, 0.04, 0]]
    classes = [{"cpdag": summary["graph"]["equivalence_class"]["cpdag"], "probability": 0.6}]
    summary["graph"]["posterior"] = {"adjacency_probability": joined, "classes": classes}
    edges, told = _drawn(summary)
    assert sorted(edge.get_linestyle() in ("-", "solid") for edge in edges) == [False, True]
    solid = next(edge for edge in edges if edge.get_linestyle() in ("-", "solid"))
    assert solid.get_linewidth() == pytest.approx(0.6 + 0.9)
    assert "0.90" in told
    assert "0.30" in told
    assert "0.04" not in told


@pytest.mark.parametrize("n_nodes", range(2, 11))
def test_nodes_do_not_overlap(n_nodes: int) -> None:
    summary = _with_class(np.triu(np.ones((n_nodes, n_nodes), dtype=int), 1).tolist())
    summary["graph"]["node_names"] = [f"node with a long name {i}" for i in range(n_nodes)]
    ax = _figure(summary).axes[0]
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
