"""Soft interventions upon nodes that labels or a mask name: from samples to graph, targets and p(N)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from simulated_environments import TREES, draw, joint

from causalpima.inference.clusters.environments import Environments, soft_labelling
from causalpima.inference.clusters.labels import Clusters, Labelling
from causalpima.inference.graphs.dags import GraphKnowledge

NODES = {"h": 2, "r": 2, "s": 2}
NAMES = ("observational", "upon h", "upon r", "upon s")
NOTHING = GraphKnowledge.none(tuple(NODES))


def raised(name: str, target: str) -> Mapping[str, tuple[tuple[str, ...], np.ndarray]]:
    """A tree with the odds of a node times 4, whatever its parents."""
    tree = {node: (parents, np.asarray(p, dtype=float)) for node, (parents, p) in TREES[name].items()}
    parents, p = tree[target]
    return {**tree, target: (parents, 4 * p / (1 + 3 * p))}


def samples(name: str, targets: str, n: int, confusion: float = 0.0) -> tuple[Clusters, np.ndarray, Labelling]:
    """Clusters of samples of the tree and of trees with one table changed, and the labelling that labels would give."""
    trees = [TREES[name], *(raised(name, target) for target in targets)]
    rng, parts, codes = np.random.default_rng(0), [], []
    for number, tree in enumerate(trees):
        parts.append(rng.choice(8, n, p=joint(tree).ravel()))
        codes.append(np.full(n, number))
    cells = np.concatenate(parts)
    order = rng.permutation(8)
    wrong = rng.random(len(cells)) < confusion
    shown = np.where(wrong, cells ^ 1, cells)
    share = np.full((len(cells), 8), 1e-9)
    share[np.arange(len(cells)), shown] = 1 - confusion
    share[np.arange(len(cells)), shown ^ 1] = max(confusion, 1e-9)
    responsibilities = (share / share.sum(1, keepdims=True))[:, order]
    base = Labelling(order, "labels", tuple(NODES), {"labels": 3})
    return Clusters(responsibilities, np.zeros((len(cells), 1))), np.concatenate(codes), base


def environments(
    codes: np.ndarray, targets: Mapping[str, str], visible: tuple[tuple[int, ...], ...] = ()
) -> Environments:
    return Environments(NODES, codes, NAMES[: codes.max() + 1], targets, visible)


@pytest.mark.parametrize("confusion", [0.0, 0.04])
@pytest.mark.parametrize("name", TREES)
def test_graph_targets_and_p_of_n_are_found_under_the_names(name: str, confusion: float) -> None:
    clusters, codes, base = samples(name, "hrs", 8000, confusion)
    found = soft_labelling(environments(codes, {}), NOTHING, clusters, base)
    truth = draw(TREES[name], [], n=1).graph
    assert found.details["graph"] == found.details["class"] == truth.tolist()
    assert found.details["targets"] == {"upon h": "h", "upon r": "r", "upon s": "s"}
    assert found.details["known_targets"] == []
    assert found.details["n_searched"] == {"graphs": 25, "targets": 27}
    assert found.details["labels"] == 3
    assert (found.source, tuple(found.named_nodes)) == ("labels", tuple(NODES))
    np.testing.assert_array_equal(found.permutation, base.permutation)
    assert found.joint is not None
    np.testing.assert_allclose(found.joint, joint(TREES[name]), atol=0.02)
    assert list(found.environment_joint) == list(NAMES[1:])


def test_every_environment_has_its_own_p_of_n() -> None:
    clusters, codes, base = samples("chain", "hrs", 8000, 0.0)
    found = soft_labelling(environments(codes, {}), NOTHING, clusters, base)
    for target in "hrs":
        error = np.abs(found.environment_joint[f"upon {target}"] - joint(raised("chain", target)))
        assert error.max() < 4 * np.sqrt(0.25 / 8000)


def test_one_environment_upon_the_middle_directs_a_chain() -> None:
    clusters, codes, base = samples("chain", "r", 4000)
    names = ("observational", "upon r")
    given = Environments(NODES, codes, names, {"upon r": "r"})
    found = soft_labelling(given, NOTHING, clusters, base)
    assert found.details["class"] == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert min(found.details["compelled_probability"][0][1], found.details["compelled_probability"][1][2]) > 0.9
    other = Environments(NODES, codes, names, {"upon r": "s"})
    assert soft_labelling(other, NOTHING, clusters, base).details["targets"] == {"upon r": "s"}


def test_a_mask_numbers_the_cells_and_labels_that_name_too_little_leave_no_graph() -> None:
    clusters, codes, base = samples("chain", "r", 2000)
    by_mask = Clusters(clusters.responsibilities[:, np.argsort(base.permutation)], clusters.embedding)
    found = soft_labelling(environments(codes, {}, ((0, 1), (1, 2))), NOTHING, by_mask, None)
    np.testing.assert_array_equal(found.permutation, np.arange(8))
    assert found.details["graph"] == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    partly = Labelling(base.permutation, "labels", ("h", "r"))
    assert soft_labelling(environments(codes, {}), NOTHING, clusters, partly) is partly
