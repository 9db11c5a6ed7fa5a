"""Runs with the rivals of the paper's graph: trained, resumed, loaded, refused; learners after the fit."""

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
from causalpima.inference.findings.graph import learned_sentence
from causalpima.inference.graphs import learners
from causalpima.inference.graphs.dags import KnowledgeConfig
from causalpima.inference.result import FitResult, rebuild_result
from causalpima.inference.run import Run
from causalpima.inference.training.batched import batched_support
from causalpima.inference.training.clustering import relabel_cells, take_over_graph
from causalpima.inference.training.components import RELAXED
from causalpima.models.graph.relaxed import RelaxedGraph

NAMES = {0: {"type": "y", "size": "2"}, 1: {"type": "x", "size": "1"}, 2: {"type": "y", "size": "1"}}
ALL_NAMES = {**NAMES, 3: {"type": "x", "size": "2"}}
QUICK = {"graph__start_steps": 3}


@cache
def finished(kind: str, **changes: Any) -> FitResult:
    run = Run(tiny_samples(120), settings(model__graph=kind, pretraining__epochs=25, **QUICK, **changes))
    run.train()
    return run.finish()


@pytest.mark.parametrize("kind", RELAXED)
@pytest.mark.parametrize("final", [True, False])
def test_a_run_ends_hard_with_tables_of_its_clusters(kind: str, final: bool) -> None:
    result = finished(kind, read_out__final=final)
    arrays = result.arrays
    assert arrays is not None
    np.testing.assert_array_equal(arrays.graph.edge_strength, arrays.graph.adjacency)
    assert arrays.graph.temperature == 0
    joint = np.exp(arrays.graph.log_joint)
    np.testing.assert_allclose(joint.sum(), 1, rtol=1e-5)
    share = arrays.responsibilities[arrays.split == "train"].mean(0).reshape(joint.shape)
    for node in (0, 1):  # whatever the edge, the tables have the shares of every node
        np.testing.assert_allclose(joint.sum(node), share.sum(node), atol=0.02)


@pytest.mark.parametrize("kind", RELAXED)
def test_every_epoch_of_joint_training_is_a_stage_and_records_what_is_left_of_cycles(kind: str) -> None:
    records = finished(kind, read_out__final=True).history
    told = [record["acyclicity"] for record in records if record["phase"] == "training"]
    assert len(told) == 2
    assert all(h >= 0 for h in told)
    assert all("acyclicity" not in record for record in records if record["phase"] == "pretraining")


@pytest.mark.parametrize("kind", RELAXED)
def test_resuming_and_loading_are_exact(kind: str, tmp_path: Path) -> None:
    straight, second = whole_and_resumed(tiny_samples(), settings(model__graph=kind, **QUICK), 2, tmp_path / "run")
    result, theirs = second.finish(), straight.finish()
    assert result.arrays is not None
    assert theirs.arrays is not None
    np.testing.assert_array_equal(result.arrays.graph.log_joint, theirs.arrays.graph.log_joint)
    graph = rebuild_result(result).model.graph
    assert isinstance(graph, RelaxedGraph)
    assert graph.is_settled
    np.testing.assert_allclose(graph.log_joint().numpy(), result.arrays.graph.log_joint, rtol=1e-6)


@pytest.mark.parametrize("kind", RELAXED)
def test_what_is_known_holds_in_a_run(kind: str) -> None:
    edges = {("A->B", "B->A"): [[0, 0], [0, 0]], (): [[0, 1], [0, 0]]}
    for forbidden, expected in edges.items():
        known = KnowledgeConfig(forbid=forbidden, require=() if forbidden else ("A->B",))
        run = Run(tiny_samples(), settings(model__graph=kind, knowledge=known, **QUICK))
        run.train()
        result = run.finish()
        assert result.arrays is not None
        np.testing.assert_array_equal(result.arrays.graph.adjacency, expected)


@pytest.mark.parametrize("kind", RELAXED)
def test_cells_that_are_renumbered_have_a_p_of_n_of_their_own(kind: str) -> None:
    run = Run(tiny_samples(120), settings(model__graph=kind, pretraining__epochs=25, **QUICK))
    run.train()
    run.finish()
    before = run.state.model.graph.log_joint().exp().sum(1)
    with run._working():
        relabel_cells(run.state, run.task.training, run.config, Labelling(np.array([2, 3, 0, 1])))
    torch.testing.assert_close(run.state.model.graph.log_joint().exp().sum(1).flip(0), before, atol=0.02, rtol=0)


@pytest.mark.parametrize("kind", RELAXED)
def test_what_environments_tell_is_taken_over(kind: str) -> None:
    run = Run(tiny_samples(), settings(model__graph=kind))
    joint = [[0.4, 0.1], [0.2, 0.3]]
    run.state.labelling = {"joint": joint, "details": {"graph": [[0, 0], [1, 0]]}}
    assert take_over_graph(run.state, run.task.training, run.config)
    graph = run.state.model.graph
    np.testing.assert_array_equal(graph.adjacency().numpy(), [[0, 0], [1, 0]])
    np.testing.assert_allclose(graph.log_joint().exp().numpy(), joint, rtol=1e-5)


@pytest.mark.parametrize("kind", RELAXED)
def test_networks_of_a_seed_are_the_same_and_tables_follow_the_seed(kind: str) -> None:
    ours, theirs = Run(tiny_samples(), settings(model__graph=kind)), Run(tiny_samples(), settings())
    weights = {name: value for name, value in theirs.weights().items() if ".graph." not in name}
    assert all(torch.equal(ours.weights()[name], value) for name, value in weights.items())
    other = Run(tiny_samples(), settings(model__graph=kind, restart=1))
    name = "model.graph.conditional_logits"
    assert not torch.equal(other.weights()[name], ours.weights()[name])


def test_they_are_not_batched_and_say_why() -> None:
    run = Run(tiny_samples(), settings(model__graph="dagma"))
    reason = batched_support(run.config, run.modalities)
    assert reason == "the graph dagma has a schedule of its own for every start, which is not batched"


def test_settings_of_the_penalties_arrive() -> None:
    given = {"graph__edge_penalty": 0.3, "graph__table_penalty": 0.2, "graph__acyclicity_tolerance": 1e-3}
    for kind in RELAXED:
        graph = Run(tiny_samples(), settings(model__graph=kind, **given)).state.model.graph
        assert isinstance(graph, RelaxedGraph)
        assert (graph.edge_penalty, graph.table_penalty) == (0.3, 0.2)
        assert getattr(graph, "tolerance", 1e-3) == 1e-3


def test_a_learner_runs_on_named_nodes_alone() -> None:
    pytest.importorskip("causallearn")
    result = finished("posthoc:pc")
    assert "posthoc" not in result.summary["graph"]
    assert result.summary["graph"]["posthoc_left_out"]["method"] == "pc"
    assert learned_sentence(result.summary).startswith("PC after the fit did not run: the nodes have no names")
    named = result.named(ALL_NAMES, nodes=("type", "size"))
    found = named.summary["graph"]["posthoc"]
    assert found["node_names"] == ["type", "size"]
    assert "posthoc_left_out" not in named.summary["graph"]
    arrays = named.arrays
    assert arrays is not None
    assert found["n_samples"] == (arrays.split == "train").sum()
    joined = np.array(found["cpdag"])
    np.testing.assert_array_equal(joined, joined.T)  # of two nodes no arrow is compelled
    assert learned_sentence(named.summary).startswith("PC after the fit (chi-square tests at 0.05; most probable")
    assert np.isnan(named.summary["graph"]["edge_strength"]).all(), "the model itself has no graph"


def test_a_learner_gets_one_row_per_group() -> None:
    pytest.importorskip("causallearn")
    data = dataclasses.replace(tiny_samples(120), groups=np.arange(120) // 3)
    run = Run(data, settings(model__graph="posthoc:pc", pretraining__epochs=25))
    run.train()
    found = run.finish().named(ALL_NAMES, nodes=("type", "size")).summary["graph"]["posthoc"]
    assert found["n_samples"] == len(np.unique(np.arange(120)[run.split == "train"] // 3))


def test_a_learner_that_is_not_installed_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    config = settings(model__graph="posthoc:pc")
    monkeypatch.setattr(learners, "find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r"^model\.graph: expected causal-learn .* pip install causal-learn"):
        Run(tiny_samples(), config)


@pytest.mark.parametrize(
    ("kind", "changes", "match"),
    [
        (
            "posthoc:pc",
            {"knowledge": KnowledgeConfig(require=("A->B",))},
            r"no edges known to be there with .* got A->B",
        ),
        (
            "posthoc:ges",
            {"knowledge": KnowledgeConfig(forbid=("B->A",))},
            r"no knowledge of the graph with .* got B->A",
        ),
        ("posthoc:lingam", {}, r"LiNGAM needs one continuous number per node"),
        ("posthoc:fci", {}, r"^model\.graph: expected hodge, exact, .*posthoc:pc, .*got 'posthoc:fci'"),
    ],
)
def test_what_a_learner_cannot_keep_to_is_refused(kind: str, changes: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        settings(model__graph=kind, **changes)
