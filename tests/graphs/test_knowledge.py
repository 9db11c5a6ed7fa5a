"""What is known of a graph: from declarations to matrices, contradictions by name, sets of parents."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from causalpima.inference.graphs.dags import (
    GraphKnowledge,
    KnowledgeConfig,
    all_dags,
    edge_text,
    graph_knowledge,
    read_edge,
)
from causalpima.inference.training.clustering import with_node_names
from causalpima.inference.training.config import FitConfig

NODES = ("a", "b", "c")


def edges(matrix: np.ndarray) -> set[str]:
    return {edge_text(NODES[i], NODES[j]) for i, j in np.argwhere(matrix)}


@pytest.mark.parametrize(
    ("config", "forbidden", "required"),
    [
        (KnowledgeConfig(), set(), set()),
        (KnowledgeConfig(forbid=("a->b", "c → a")), {"a->b", "c->a"}, set()),
        (KnowledgeConfig(require=("a->b", "b->c")), set(), {"a->b", "b->c"}),
        (KnowledgeConfig(designed=("b",)), {"a->b", "c->b"}, set()),
        (KnowledgeConfig(tiers=(("b",), ("a", "c"))), {"a->b", "c->b"}, set()),
        (KnowledgeConfig(tiers=(("c",), ("a",))), {"a->c"}, set()),
        (KnowledgeConfig(tiers=(("c",), ("b",), ("a",)), forbid=("c->a",)), {"a->c", "a->b", "b->c", "c->a"}, set()),
    ],
)
def test_declarations_become_edges(config: KnowledgeConfig, forbidden: set[str], required: set[str]) -> None:
    found = graph_knowledge(config, NODES)
    assert (edges(found.forbidden), edges(found.required)) == (forbidden, required)


def test_forbidding_every_edge_is_no_contradiction() -> None:
    every = tuple(edge_text(i, j) for i in NODES for j in NODES if i != j)
    found = graph_knowledge(KnowledgeConfig(forbid=every), NODES)
    assert found.allows(all_dags(3)).tolist() == [True] + [False] * 24


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (KnowledgeConfig(forbid=("a->d",)), "knowledge.forbid: expected nodes among a, b, c, got 'd' in 'a->d'"),
        (KnowledgeConfig(require=("a->a",)), "knowledge.require: expected edges between two nodes, got 'a->a'"),
        (KnowledgeConfig(forbid=("a",)), "knowledge.forbid: expected edges as CAUSE->EFFECT"),
        (KnowledgeConfig(designed=("d",)), "knowledge.designed: expected nodes among a, b, c, got 'd'"),
        (KnowledgeConfig(tiers=(("a",), ("d",))), "knowledge.tiers: expected nodes among a, b, c, got 'd'"),
        (KnowledgeConfig(tiers=(("a",), ("b", "a"))), "knowledge.tiers: .* one tier at most, got 'a' twice"),
        (KnowledgeConfig(forbid=("a->b",), require=("a→b",)), "knowledge.require: .*knowledge.forbid.*got a->b"),
        (KnowledgeConfig(designed=("b",), require=("a->b",)), "knowledge.require: .*knowledge.designed.*got a->b"),
        (KnowledgeConfig(tiers=(("b",), ("a",)), require=("a->b",)), "knowledge.require: .*tiers.*got a->b"),
        (KnowledgeConfig(require=("a->b", "b->a")), "knowledge.require: .*without a cycle, got a->b->a"),
        (KnowledgeConfig(require=("a->b", "b->c", "c->a")), "knowledge.require: .*a cycle, got a->b->c->a"),
    ],
)
def test_contradictions_are_named_before_anything_runs(config: KnowledgeConfig, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FitConfig(nodes=dict.fromkeys(NODES, 2), knowledge=config)


# c --> a --> b --> a, and a --> d: the cycle is told without what leads into it and out of it
def test_the_cycle_is_named_and_nothing_else() -> None:
    config = KnowledgeConfig(require=("c->a", "a->b", "b->a", "a->d"))
    with pytest.raises(ValueError, match=r"got a->b->a;"):
        graph_knowledge(config, ("c", "a", "b", "d"))


def test_independence_contradicts_a_required_edge() -> None:
    with pytest.raises(ValueError, match=r"knowledge\.require: expected no edges between nodes"):
        FitConfig(nodes={"a": 2, "b": 2}, independent_nodes=True, knowledge=KnowledgeConfig(require=("a->b",)))


@pytest.mark.parametrize("value", [("a->b", 1), "a->b", {"a": "b"}, None])
def test_what_is_no_list_of_names_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"knowledge\.forbid: expected names"):
        FitConfig(nodes={"a": 2, "b": 2}, knowledge=KnowledgeConfig(forbid=value))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("a->b", ("a", "b")),
        (" x,y ->  T [K] ", ("x,y", "T [K]")),
        ("p->q->r", ("p->q", "r")),
        ("p->q → p->q", ("p->q", "p->q")),
    ],
)
def test_names_may_hold_arrows(text: str, pair: tuple[str, str]) -> None:
    assert read_edge("forbid", text, ("a", "b", "x,y", "T [K]", "p->q", "r")) == pair


def test_a_text_that_is_two_edges_is_refused() -> None:
    with pytest.raises(ValueError, match="can be read in one way, got 'a->b->c'"):
        read_edge("forbid", "a->b->c", ("a", "b->c", "a->b", "c"))


def test_sets_of_parents_are_those_of_the_graphs_that_are_allowed() -> None:
    config = KnowledgeConfig(forbid=("a->b",), require=("b->c",), designed=("a",))
    found = graph_knowledge(config, NODES).parent_sets()
    everything = [frozenset(c) for n in range(4) for c in combinations(range(3), n)]
    allowed = {
        (node, s)
        for node in range(3)
        for s in everything
        if node not in s and not (node == 0 and s) and not (node == 1 and 0 in s) and not (node == 2 and 1 not in s)
    }
    read = {(node, s) for node in range(3) for s in everything if found[node, sum(1 << k for k in s)]}
    assert read == allowed


def test_other_names_of_the_nodes_are_other_names_in_the_knowledge() -> None:
    knowledge = KnowledgeConfig(("a->b",), ("a → c",), (("a", "b"), ("c",)), ("a",))
    renamed = with_node_names(FitConfig(nodes=dict.fromkeys(NODES, 2), knowledge=knowledge), ("b", "hue->x", "d"))
    assert renamed.knowledge == KnowledgeConfig(("b->hue->x",), ("b->d",), (("b", "hue->x"), ("d",)), ("b",))
    before, after = (graph_knowledge(k, n) for k, n in ((knowledge, NODES), (renamed.knowledge, tuple(renamed.nodes))))
    np.testing.assert_array_equal(before.forbidden, after.forbidden)
    np.testing.assert_array_equal(before.required, after.required)


def test_the_fingerprint_of_a_fit_tells_what_was_known() -> None:
    nodes = dict.fromkeys(NODES, 2)
    known = FitConfig(nodes=nodes, knowledge=KnowledgeConfig(designed=("a",)))
    assert known.fingerprint("data") != FitConfig(nodes=nodes).fingerprint("data")


def test_nothing_known_allows_every_graph() -> None:
    assert GraphKnowledge.none(NODES).allows(all_dags(3)).all()
