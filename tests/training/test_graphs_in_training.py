"""Runs with every kind of graph: trained, resumed, loaded, renamed, refused."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from resumed_runs import whole_and_resumed
from tiny_fits import settings, tiny_samples

from causalpima.inference.clusters.labels import Labelling
from causalpima.inference.command_line.run_data import describe
from causalpima.inference.graphs.dags import KnowledgeConfig
from causalpima.inference.result import FitResult, rebuild_result
from causalpima.inference.run import Run
from causalpima.inference.training import clustering as renaming
from causalpima.inference.training.batched import batched_support
from causalpima.inference.training.clustering import relabel_cells, take_over_graph, with_node_names
from causalpima.inference.training.components import make_graph
from causalpima.inference.training.config import FitConfig, ModelConfig
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.graph.table import TableGraph

NODES = {"A": 2, "B": 3, "C": 2}
GIVEN: dict[str, dict[str, Any]] = {
    "exact": {"model__graph": "exact"},
    "complete": {"model__graph": "complete"},
    "empty": {"model__graph": "empty"},
    "fixed": {"model__graph": "fixed", "model__edges": ("B->A",)},
}
EDGES = {"complete": [[0, 1], [0, 0]], "empty": [[0, 0], [0, 0]], "fixed": [[0, 0], [1, 0]]}


@cache
def finished(kind: str) -> FitResult:
    changes = {"pretraining__epochs": 25, "pretraining__kl_warmup": 20, **GIVEN[kind]}
    run = Run(tiny_samples(120), settings(**changes))
    run.train()
    return run.finish()


@pytest.mark.parametrize("kind", GIVEN)
def test_a_run_ends_with_a_hard_graph_and_its_p_of_n(kind: str) -> None:
    result = finished(kind)
    arrays = result.arrays
    assert arrays is not None
    graph = arrays.graph
    np.testing.assert_array_equal(graph.edge_strength, graph.adjacency)
    if kind in EDGES:
        np.testing.assert_array_equal(graph.adjacency, EDGES[kind])
    assert graph.temperature == 0
    assert result.summary["graph"]["edge_strength"] == graph.adjacency.tolist()
    joint = np.exp(graph.log_joint)
    np.testing.assert_allclose(joint.sum(), 1, rtol=1e-5)
    if kind in ("complete", "fixed"):  # p(N) is free: the shares of the clusters, but for the pseudo-count
        share = arrays.responsibilities[arrays.split == "train"].mean(0)
        np.testing.assert_allclose(joint.reshape(-1), share, atol=0.02)


@pytest.mark.parametrize("kind", GIVEN)
def test_a_finished_run_is_put_together_again_and_predicts(kind: str) -> None:
    result = finished(kind)
    fitted = rebuild_result(result)
    assert isinstance(fitted.model.graph, TableGraph)
    assert result.arrays is not None
    np.testing.assert_array_equal(fitted.model.graph.adjacency().numpy(), result.arrays.graph.adjacency)
    np.testing.assert_allclose(fitted.model.graph.log_joint().numpy(), result.arrays.graph.log_joint, rtol=1e-6)
    predicted = result.predict(dict(tiny_samples().modalities), draws=5)
    assert np.isfinite(predicted["responsibilities"].to_numpy()).all()


@pytest.mark.parametrize("kind", ["exact", "fixed"])
def test_resuming_is_exact(kind: str, tmp_path: Path) -> None:
    straight, second = whole_and_resumed(tiny_samples(), settings(**GIVEN[kind]), 2, tmp_path / "run")
    ours, theirs = second.finish().arrays, straight.finish().arrays
    assert ours is not None
    assert theirs is not None
    np.testing.assert_array_equal(ours.graph.log_joint, theirs.graph.log_joint)
    np.testing.assert_array_equal(ours.responsibilities, theirs.responsibilities)


@pytest.mark.parametrize("kind", GIVEN)
def test_names_are_given_to_clusters_and_nodes(kind: str) -> None:
    called = {0: ("y", "2"), 1: ("x", "1"), 2: ("y", "1"), 3: ("x", "2")}
    names = {cluster: {"type": a, "size": b} for cluster, (a, b) in called.items()}
    named = finished(kind).named(names, nodes=("type", "size"))
    arrays = named.arrays
    assert arrays is not None
    assert arrays.graph.node_names == ("type", "size")
    if kind in EDGES:
        np.testing.assert_array_equal(arrays.graph.adjacency, EDGES[kind])
    if kind in ("complete", "fixed"):
        share = arrays.responsibilities[arrays.split == "train"].mean(0)
        np.testing.assert_allclose(np.exp(arrays.graph.log_joint).reshape(-1), share, atol=0.02)


def test_edges_of_a_given_graph_are_renamed_with_their_nodes() -> None:
    config = settings(**GIVEN["fixed"])
    assert with_node_names(config, ("hue", "size")).model.edges == ("size->hue",)


@pytest.mark.parametrize("kind", GIVEN)
def test_what_environments_tell_is_taken_over_but_for_a_graph_that_is_given(kind: str) -> None:
    run = Run(tiny_samples(), settings(**GIVEN[kind]))
    joint = [[0.4, 0.1], [0.2, 0.3]]
    run.state.labelling = {"joint": joint, "details": {"graph": [[0, 0], [1, 0]]}}
    assert take_over_graph(run.state, run.task.training, run.config)
    graph = run.state.model.graph
    told = [[0, 0], [1, 0]] if kind == "exact" else EDGES[kind]
    np.testing.assert_array_equal(graph.adjacency().numpy(), told)
    expected = np.array(joint) if kind != "empty" else np.outer([0.5, 0.5], [0.6, 0.4])
    np.testing.assert_allclose(graph.log_joint().exp().numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("kind", GIVEN)
def test_the_networks_of_a_seed_are_the_same_whichever_the_graph(kind: str) -> None:
    ours, theirs = Run(tiny_samples(), settings(**GIVEN[kind])), Run(tiny_samples(), settings())
    weights = {name: value for name, value in theirs.weights().items() if ".graph." not in name}
    assert all(torch.equal(ours.weights()[name], value) for name, value in weights.items())


def test_hard_graphs_are_not_batched_and_say_why() -> None:
    run = Run(tiny_samples(), settings(model__graph="exact"))
    reason = batched_support(run.config, run.modalities)
    assert reason == "the graph exact has tables in closed form, which are not batched"


def test_a_dry_run_counts_no_parameters_of_a_hard_graph() -> None:
    lines = describe(Run(tiny_samples(), settings(model__graph="complete")), "there").splitlines()
    assert any(line.split() == ["graph", "0", "parameters"] for line in lines)


def config_of(graph: str, edges: tuple[str, ...] = (), **knowledge: Any) -> FitConfig:
    return FitConfig(NODES, model=ModelConfig(graph=graph, edges=edges), knowledge=KnowledgeConfig(**knowledge))


def test_every_kind_of_graph_is_made() -> None:
    assert isinstance(make_graph(config_of("hodge")), HodgeGraph)
    edges = {
        "exact": config_of("exact", require=("C->A",)),
        "complete": config_of("complete"),
        "empty": config_of("empty"),
        "fixed": config_of("fixed", ("A->C", "B->C")),
    }
    found = {kind: make_graph(config).adjacency().nonzero().tolist() for kind, config in edges.items()}
    assert found == {
        "exact": [[2, 0]],
        "complete": [[0, 1], [0, 2], [1, 2]],
        "empty": [],
        "fixed": [[0, 2], [1, 2]],
    }


@pytest.mark.parametrize(
    ("graph", "edges", "knowledge", "match"),
    [
        ("exhaustive", (), {}, r"^model\.graph: expected hodge, exact, .*, got .exh"),
        ("exact", ("A->B",), {}, r"^model\.edges: expected none with model.graph exact, got A->B"),
        ("fixed", ("A->B", "B->A"), {}, r"^model\.edges: expected a graph without cycles, got A->B, B->A"),
        ("fixed", ("A->A",), {}, r"^model\.edges: expected a graph without cycles, got A->A"),
        ("fixed", ("A->D",), {}, r"^model\.edges: expected nodes among A, B, C, got 'D'"),
        ("fixed", ("A->B",), {"forbid": ("A->B",)}, r"got A->B, known not to be there"),
        ("fixed", ("A->B",), {"tiers": (("B",), ("A",))}, r"got A->B, known not to be there"),
        ("fixed", ("A->B",), {"require": ("C->B",)}, r"got no C->B, known to be there"),
        ("empty", (), {"require": ("C->B",)}, r"expected empty to agree with what is known, got no C->B"),
        ("complete", (), {"designed": ("B",)}, r"expected complete to agree with what is known, got A->B"),
    ],
)
def test_graphs_that_are_none_or_contradict_what_is_known_are_refused(
    graph: str, edges: tuple[str, ...], knowledge: dict[str, Any], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        config_of(graph, edges, **knowledge)


def test_too_many_nodes_are_not_searched() -> None:
    nodes = {f"N{k}": 2 for k in range(13)}
    with pytest.raises(ValueError, match=r"^model\.graph: expected at most 12 nodes to search exactly, got 13"):
        FitConfig(nodes, model=ModelConfig(graph="exact"))


def test_the_search_keeps_to_what_is_known() -> None:
    changes = {"knowledge": KnowledgeConfig(forbid=("A->B", "B->A")), "graph__pseudo_count": 0.1}
    run = Run(tiny_samples(), settings(model__graph="exact", **changes))
    run.train()
    assert not run.state.model.graph.adjacency().any()


def test_samples_of_a_group_count_as_one_for_the_final_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[np.ndarray | None] = []

    def settle(*_: object) -> None:
        told.append(_[-1])  # type: ignore[arg-type]

    monkeypatch.setattr(renaming, "settle_tables", settle)
    for groups in (None, np.arange(41) // 4):
        data = dataclasses.replace(tiny_samples(), groups=groups)
        run = Run(data, settings(model__graph="exact"))
        run.train()
        run.finish()
    assert told[0] is None
    assert told[1] is not None
    np.testing.assert_allclose(told[1].sum(), len(np.unique(np.arange(41)[run.split == "train"] // 4)))


def test_relabelled_cells_get_the_graph_of_their_mixture() -> None:
    run = Run(tiny_samples(120), settings(**{"pretraining__epochs": 25, "model__graph": "exact"}))
    run.train()
    run.finish()
    before = run.state.model.graph.log_joint().exp().reshape(-1)
    with run._working():
        relabel_cells(run.state, run.task.training, run.config, Labelling(np.array([2, 3, 0, 1])))
    after = run.state.model.graph.log_joint().exp().reshape(-1)
    torch.testing.assert_close(after[torch.tensor([2, 3, 0, 1])], before, atol=0.02, rtol=0)
