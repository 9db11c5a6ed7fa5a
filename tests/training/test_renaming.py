"""A finished fit under names: the same clusters in other cells, with p(N) fitted to them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from tiny_fits import settings, tiny_samples

from causalpima.inference.result import FitResult
from causalpima.inference.run import Run
from causalpima.inference.training.clustering import refit_graph, with_node_names
from causalpima.inference.training.config import ObserveConfig

CALLED = {0: ("y", "2"), 1: ("x", "1"), 2: ("y", "1"), 3: ("x", "2")}
NAMES = {cluster: {"type": a, "size": b} for cluster, (a, b) in CALLED.items()}


@cache
def fitted(**changes: Any) -> FitResult:
    """A fit whose clusters are clean, so that p(N) decides nothing."""
    quick = {"pretraining__epochs": 25, "pretraining__kl_warmup": 20, "graph__start_steps": 200}
    run = Run(tiny_samples(120), settings(**{**quick, **changes}))
    run.train()
    return run.finish()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"decoder__per_cell": True},
        {"objective": "meanfield", "mixture__gaussians": "one"},
        {"distillation__epochs": 1},
    ],
)
def test_clusters_stay_and_cells_are_called_by_their_names(changes: dict[str, Any]) -> None:
    result = fitted(**changes)
    named = result.named(NAMES, nodes=("type", "size"))
    before, after = result.arrays, named.arrays
    assert before is not None
    assert after is not None
    assert after.graph.node_names == ("type", "size")
    assert after.graph.outcome_names == (("y", "x"), ("1", "2"))
    cells = [
        after.graph.outcome_names[0].index(a) * 2 + after.graph.outcome_names[1].index(b) for a, b in CALLED.values()
    ]
    np.testing.assert_array_equal(after.latent_loc, before.latent_loc)
    agreement = (np.array(cells)[before.responsibilities.argmax(1)] == after.responsibilities.argmax(1)).mean()
    assert agreement == 1.0
    np.testing.assert_allclose(after.modalities["spectrum"].decoded[cells], before.modalities["spectrum"].decoded)
    np.testing.assert_allclose(np.exp(after.graph.log_joint).reshape(-1).sum(), 1.0, rtol=1e-6)
    share = after.responsibilities[after.split == "train"].mean(0)
    np.testing.assert_allclose(np.exp(after.graph.log_joint).reshape(-1), share, atol=0.05)
    assert named.summary["labelling"]["source"] == "names"
    assert named.summary["labelling"]["details"]["clusters"] == np.argsort(cells).tolist()


def test_a_named_fit_predicts_under_its_names() -> None:
    named = fitted().named(NAMES, nodes=("type", "size"))
    predicted = named.predict(dict(tiny_samples().modalities), draws=5)
    assert predicted.cell.to_numpy().tolist() == ["y,1", "y,2", "x,1", "x,2"]


def test_names_can_be_given_again_and_undone() -> None:
    result = fitted()
    there = {cluster: {"A": a, "B": b} for cluster, (a, b) in CALLED.items()}
    named = result.named(there)
    assert named.arrays is not None
    cells = np.argsort(named.summary["labelling"]["details"]["clusters"])
    back = {int(cell): {"A": str(c // 2), "B": str(c % 2)} for c, cell in enumerate(cells)}
    again = named.named(back)
    assert again.arrays is not None
    assert result.arrays is not None
    np.testing.assert_array_equal(again.arrays.responsibilities.argmax(1), result.arrays.responsibilities.argmax(1))


@pytest.mark.parametrize(
    ("names", "nodes", "match"),
    [
        ({0: {"type": "y"}}, ("type", "size"), "^cluster [0-3]: expected names, for it has"),
        (NAMES, ("type",), "^nodes: expected 2 different names, got type"),
        (NAMES, None, "^names: expected the nodes A, B for cluster 0, got 'type'"),
    ],
)
def test_other_names_are_refused(names: Any, nodes: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        fitted().named(names, nodes)


def test_the_refitted_graph_finds_an_edge_that_is_there_and_none_that_is_not() -> None:
    """A -> B in the masses of the cells; then none."""
    run = Run(tiny_samples(), settings(graph__edge_rate=2.0, graph__extra_steps=20, graph__start_steps=300))
    for mass, has_edge in (([40.0, 10.0, 10.0, 40.0], True), ([36.0, 24.0, 24.0, 16.0], False)):
        with run._working():
            refit_graph(run.state, 10 * torch.tensor(mass), run.config)
            graph = run.state.model.graph
            torch.testing.assert_close(graph.log_joint().exp().reshape(-1), torch.tensor(mass) / 100, atol=0.01, rtol=0)
            assert bool(graph.adjacency().any()) or not has_edge
            assert graph.temperature == run.config.graph.temperature_end


def test_after_distillation_the_graph_fits_the_clusters_that_are_read_out() -> None:
    result = fitted(distillation__epochs=1, read_out__final=True)
    arrays = result.arrays
    assert arrays is not None
    share = arrays.responsibilities[arrays.split == "train"].mean(0)
    np.testing.assert_allclose(np.exp(arrays.graph.log_joint).reshape(-1), share, atol=0.05)


def test_renamed_nodes_are_renamed_where_they_are_observed() -> None:
    config = settings(observe=ObserveConfig({"B": "label"}))
    renamed = with_node_names(config, ("hue", "size"))
    assert renamed.nodes == {"hue": 2, "size": 2}
    assert renamed.observe.variables == {"size": "label"}
