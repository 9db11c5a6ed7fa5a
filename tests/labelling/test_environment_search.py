"""Labelling, graph and targets from environments."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax
from simulated_environments import TREES, Drawn, draw, joint

from causalpima.inference.clusters.environments import (
    Environments,
    environment_counts,
    family_scores,
    interventional_joint,
    interventional_joints,
    search,
    target_maps,
)
from causalpima.inference.clusters.labels import (
    Clusters,
    Labelling,
    enumerate_labellings,
    node_outcomes,
    partition_codes,
)
from causalpima.inference.graphs.dags import GraphKnowledge, KnowledgeConfig, all_dags, graph_knowledge

NODES = {"h": 2, "r": 2, "s": 2}
ALL_DO = ({"h": 0.8}, {"r": 0.15}, {"s": 0.75})
NAMES = ("none", "do_h", "do_r", "do_s")
TARGETS = {"do_h": "h", "do_r": "r", "do_s": "s"}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def score_by_hand(samples: list[tuple[int, tuple[int, ...]]], graph: np.ndarray, targets: Any, n_params: int) -> float:
    """BIC, sample by sample: log of the share of its outcome among those with its parents' outcomes."""
    total = 0.0
    for environment, cell in samples:
        for node in range(graph.shape[0]):
            own = environment > 0 and targets[environment - 1] == node
            parents: list[int] = [] if own else np.flatnonzero(graph[:, node]).tolist()
            alike = [
                other
                for e, other in samples
                if (e == environment if own else not (e > 0 and targets[e - 1] == node))
                and all(other[p] == cell[p] for p in parents)
            ]
            total += np.log(np.mean([other[node] == cell[node] for other in alike]))
    return float(total - n_params / 2 * np.log(len(samples)))


def test_scores_equal_those_by_hand(rng: np.random.Generator) -> None:
    outcomes, graphs, maps = (2, 3), all_dags(2), target_maps([None, None], 2)
    cluster, codes = rng.integers(0, 6, 60), np.repeat([0, 1, 2], 20)
    counts = np.stack([np.bincount(cluster[codes == e], minlength=6) for e in range(3)]).astype(float)
    labelling = rng.permutation(6)
    cells = [
        (int(e), tuple(int(x) for x in np.unravel_index(labelling[c], outcomes)))
        for e, c in zip(codes, cluster, strict=True)
    ]
    families = family_scores(counts, labelling[None], outcomes)[0]
    for graph, targets in product(graphs, maps):
        sets = [sum(1 << e for e in range(2) if targets[e] == node) for node in range(2)]
        parents = [sum(1 << k for k in range(2) if graph[k, node]) for node in range(2)]
        found = sum(families[node, sets[node], parents[node]] for node in range(2))
        sizes = np.array(outcomes)
        free = sum((sizes[l] - 1) * (np.prod(sizes[graph[:, l] > 0]) + (targets == l).sum()) for l in range(2))
        assert found == pytest.approx(score_by_hand(cells, graph, targets, int(free)))


def test_a_node_is_no_parent_of_its_own() -> None:
    scores = family_scores(np.ones((1, 4)), np.arange(4)[None], (2, 2))
    assert np.isneginf(scores[0, 0, 0, [1, 3]]).all()
    assert np.isneginf(scores[0, 1, 0, [2, 3]]).all()
    assert np.isfinite(scores[0, 0, 0, [0, 2]]).all()


def test_evidence_sums_over_graphs_and_targets(rng: np.random.Generator) -> None:
    counts = rng.integers(5, 50, (3, 4)).astype(float)
    labellings = enumerate_labellings((2, 2))
    found = search(counts, labellings, (2, 2), [None, None])
    families = family_scores(counts, labellings, (2, 2))
    for k in range(len(labellings)):
        terms = [
            families[k, 0, (a == 0) + 2 * (b == 0), 2 * graph[1, 0]]
            + families[k, 1, (a == 1) + 2 * (b == 1), graph[0, 1]]
            for graph, a, b in product(all_dags(2), range(2), range(2))
        ]
        assert found.evidence[k] == pytest.approx(np.logaddexp.reduce(terms))
    assert found.n_maps == 4


def test_counts_of_environments_maximise_the_likelihood(rng: np.random.Generator) -> None:
    density = rng.random((300, 3)) ** 3
    share = np.array([0.5, 0.3, 0.2])
    for _ in range(2000):  # shares under which the responsibilities are those of one mixture for all samples
        r = density * share / (density * share).sum(1, keepdims=True)
        share = r.mean(0)
    codes = np.repeat([0, 1], [100, 200])
    found = environment_counts(r, codes, 2)
    for code in range(2):
        rows = density[codes == code]
        best = minimize(lambda x, rows=rows: -np.log(rows @ softmax(np.r_[x, 0.0])).sum(), np.zeros(2), tol=1e-12)
        assert found[code] == pytest.approx(len(rows) * softmax(np.r_[best.x, 0.0]), abs=2e-3 * len(rows))
    assert found.sum(1) == pytest.approx([100, 200])


def test_counts_are_not_drawn_to_the_mean_of_the_environments() -> None:
    drawn = draw(TREES["chain"], [{"h": 0.95}], 20_000, 0.1)
    expected = np.stack([joint(TREES["chain"]).ravel(), joint(TREES["chain"], {"h": 0.95}).ravel()])[:, drawn.labelling]
    r = drawn.clusters.responsibilities
    naive = np.stack([r[drawn.codes == e].sum(0) for e in range(2)]) / 20_000
    error = np.abs(environment_counts(r, drawn.codes, 2) / 20_000 - expected).max()
    assert error < 4 * np.sqrt(0.25 / 20_000) < np.abs(naive - expected).max()


def is_right(drawn: Drawn, found: Labelling) -> bool:
    """Each node has the true clusters behind it, whatever its outcomes are called."""
    return same_meaning(found.permutation, drawn.labelling)


def same_meaning(one: np.ndarray, other: np.ndarray) -> bool:
    codes, expected = (partition_codes(node_outcomes(entry, (2, 2, 2))) for entry in (one, other))
    return np.array_equal(codes, expected)


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("confusion", [0.0, 0.04])
def test_environments_upon_every_node_tell_names_and_directions(tree: str, confusion: float) -> None:
    drawn = draw(TREES[tree], ALL_DO, 4096, confusion)
    found = Environments(NODES, drawn.codes, NAMES, TARGETS).labelling(drawn.clusters)
    assert is_right(drawn, found)
    assert found.details["graph"] == drawn.graph.tolist()
    assert tuple(found.named_nodes) == ("h", "r", "s")
    assert found.details["n_remaining"] == 1
    assert found.joint is not None
    assert np.abs(found.joint.sum() - 1) < 1e-12


def test_p_of_n_is_that_without_interventions() -> None:
    drawn = draw(TREES["collider"], ALL_DO, 20_000)
    counts = environment_counts(drawn.clusters.responsibilities, drawn.codes, 4)
    found = interventional_joint(counts, drawn.labelling, (2, 2, 2), drawn.graph, np.array([0, 1, 2]))
    assert np.abs(found - joint(TREES["collider"])).max() < 4 * np.sqrt(0.25 / 20_000)
    pooled = counts.sum(0)[np.argsort(drawn.labelling)].reshape(2, 2, 2) / counts.sum()
    assert np.abs(pooled - joint(TREES["collider"])).max() > 0.03


def test_p_of_n_under_an_intervention_is_that_of_its_environment() -> None:
    n = 20_000
    drawn = draw(TREES["collider"], ALL_DO, n)
    counts = environment_counts(drawn.clusters.responsibilities, drawn.codes, 4)
    found = interventional_joints(counts, drawn.labelling, (2, 2, 2), drawn.graph, np.array([0, 1, 2]))
    for environment, do in enumerate([None, *ALL_DO]):
        truth = joint(TREES["collider"], do)
        assert np.abs(found[environment] - truth).max() < 4 * np.sqrt(0.25 / n)
        assert np.abs(found[environment].sum() - 1) < 1e-12
    told = Environments(NODES, drawn.codes, NAMES, TARGETS).labelling(drawn.clusters)
    assert list(told.environment_joint) == list(NAMES[1:])
    assert list(told.to_plain()["environment_joint"]) == list(NAMES[1:])


def test_unknown_targets_are_found_and_nodes_numbered_by_them() -> None:
    drawn = draw(TREES["chain"], [ALL_DO[2], ALL_DO[0], ALL_DO[1]], 4096)
    nodes = {"N1": 2, "N2": 2, "N3": 2}
    found = Environments(nodes, drawn.codes, ("none", "a", "b", "c"), {}).labelling(drawn.clusters)
    assert found.details["targets"] == {"a": "N1", "b": "N2", "c": "N3"}
    assert tuple(found.named_nodes) == ("N1", "N2", "N3")
    # N1 is s, N2 is h, N3 is r: the chain h -> r -> s.
    assert found.details["graph"] == [[0, 0, 0], [0, 0, 1], [1, 0, 0]]


def test_one_environment_leaves_labellings_and_says_so() -> None:
    drawn = draw(TREES["chain"], [ALL_DO[1]], 4096)
    found = Environments(NODES, drawn.codes, ("none", "do_r"), {"do_r": "r"}).labelling(drawn.clusters)
    assert found.details["n_remaining"] > 1
    assert {"h", "s"}.isdisjoint(found.named_nodes)


def test_labels_of_all_nodes_leave_the_graph_to_the_environments() -> None:
    drawn = draw(TREES["edge"], ALL_DO, 4096)
    base = Labelling(drawn.labelling, "labels", ("h", "r", "s"), {"n_labelled": 7})
    found = Environments(NODES, drawn.codes, NAMES, {}).labelling(drawn.clusters, base)
    assert np.array_equal(found.permutation, drawn.labelling)
    assert found.source == "labels"
    assert found.details["graph"] == drawn.graph.tolist()
    assert found.details["n_labelled"] == 7
    assert found.details["targets"] == TARGETS


def test_what_is_known_of_the_graph_holds_under_interventions() -> None:
    """h -> r in the truth; known is that it is not there."""
    drawn = draw(TREES["edge"], ALL_DO, 4096)
    base = Labelling(drawn.labelling, "labels", ("h", "r", "s"))
    for given in (base, None):
        free = Environments(NODES, drawn.codes, NAMES, TARGETS).labelling(drawn.clusters, given)
        (cause, effect), *_ = np.argwhere(np.array(free.details["graph"]))
        forbidden = np.zeros((3, 3), dtype=bool)
        forbidden[cause, effect] = True
        known = GraphKnowledge(tuple(NODES), forbidden, np.zeros((3, 3), dtype=bool))
        found = Environments(NODES, drawn.codes, NAMES, TARGETS, knowledge=known).labelling(drawn.clusters, given)
        assert known.allows(np.array(found.details["graph"]))
        assert found.details["edge_probability"][cause][effect] == 0


def test_nodes_that_knowledge_tells_apart_are_not_exchanged() -> None:
    """No target is known: N1 is by tiers before the others, which stay alike and are numbered by the environments."""
    drawn = draw(TREES["chain"], [ALL_DO[2], ALL_DO[0], ALL_DO[1]], 4096)
    nodes = {"N1": 2, "N2": 2, "N3": 2}
    known = graph_knowledge(KnowledgeConfig(tiers=(("N1",), ("N2", "N3"))), tuple(nodes))
    found = Environments(nodes, drawn.codes, ("none", "a", "b", "c"), {}, knowledge=known).labelling(drawn.clusters)
    # a is upon s, b upon h, c upon r, and h comes first in h -> r -> s: N1 is h, and N2 is s since a is upon it.
    assert found.details["targets"] == {"a": "N2", "b": "N1", "c": "N3"}
    assert found.details["graph"] == [[0, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert tuple(found.named_nodes) == ("N1", "N2", "N3")


def test_labels_of_one_node_are_kept() -> None:
    drawn = draw(TREES["fork"], ALL_DO[1:], 4096)
    base = Labelling(drawn.labelling, "labels", ("h",))
    targets = {"do_r": "r", "do_s": "s"}
    found = Environments(NODES, drawn.codes, ("none", "do_r", "do_s"), targets).labelling(drawn.clusters, base)
    assert is_right(drawn, found)
    assert found.details["graph"] == drawn.graph.tolist()
    mine, true = (node_outcomes(entry, (2, 2, 2))[0] for entry in (found.permutation, drawn.labelling))
    assert np.array_equal(mine, true)  # the names of its outcomes, too


def test_soft_interventions_mislead() -> None:
    """The reason why they are refused: the wrong labelling looks as sure as a right one."""
    shifted = [
        dict(TREES["chain"], **{node: (parents, 1 - np.asarray(p))}) for node, (parents, p) in TREES["chain"].items()
    ]
    rng, number = np.random.default_rng(0), np.random.default_rng(1).permutation(8)
    joints = [joint(tree) for tree in (TREES["chain"], *shifted)]
    cluster = number[np.concatenate([rng.choice(8, 4096, p=table.ravel()) for table in joints])]
    drawn = draw(TREES["chain"], ALL_DO, 1)
    clusters = drawn.clusters._replace(responsibilities=np.eye(8)[cluster])
    found = Environments(NODES, np.repeat(np.arange(4), 4096), NAMES, TARGETS).labelling(clusters)
    assert not is_right(drawn._replace(labelling=np.argsort(number)), found)


def test_too_many_target_maps_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^environments.targets: expected at most 5000 ways .* 3\*\*9; name the tar"):
        target_maps([None] * 9, 3)


def test_a_mask_limits_the_search_to_what_it_leaves_open() -> None:
    """The first modality sees h and r, the second r and s: h may be recoded for every outcome of r, and so may s."""
    drawn = draw(TREES["chain"], ALL_DO, 4096)
    true = Clusters(drawn.clusters.responsibilities[:, np.argsort(drawn.labelling)], drawn.clusters.embedding)
    h, r, s = np.indices((2, 2, 2)).reshape(3, -1)
    recoded = np.ravel_multi_index((h ^ r, r, s), (2, 2, 2))  # as a fit under this mask may number its cells
    clusters = true._replace(responsibilities=true.responsibilities[:, recoded])
    environments = Environments(NODES, drawn.codes, NAMES, TARGETS, ((0, 1), (1, 2)))
    found = environments.labelling(clusters)
    assert found.details["n_searched"]["labellings"] == 4
    assert same_meaning(found.permutation, recoded)
    assert found.details["graph"] == drawn.graph.tolist()


def test_a_mask_that_says_all_needs_no_search() -> None:
    nodes = dict.fromkeys("abcde", 2)
    counts = np.random.default_rng(0).integers(1, 30, (2, 32))
    cells, codes = np.repeat(np.tile(np.arange(32), 2), counts.ravel()), np.repeat([0, 1], counts.sum(1))
    each = tuple((node,) for node in range(5))
    environments = Environments(nodes, codes, ("none", "do_a"), {"do_a": "a"}, each)
    environments.check()
    found = environments.labelling(Clusters(np.eye(32)[cells], np.zeros((len(cells), 1))))
    assert np.array_equal(found.permutation, np.arange(32))
    assert found.details["n_searched"]["labellings"] == 1
