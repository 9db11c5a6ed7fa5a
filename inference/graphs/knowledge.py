"""What is known of a graph beforehand: edges that are not there, edges that are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference.graphs.dags import is_acyclic
from inference.graphs.edge_text import edge_text, read_edge

if TYPE_CHECKING:
    from inference.training.side_information_config import KnowledgeConfig

__all__ = ["GraphKnowledge", "graph_knowledge"]


@dataclass(frozen=True)
class GraphKnowledge:
    """Edges that every graph must lack or have; tiers and designed nodes are edges that are not there.

    Attributes:
        nodes: Names of the L nodes.
        forbidden: bool `[L, L]`, row = cause, column = effect; the diagonal is not looked at.
        required: bool `[L, L]`; no edge is both, and the required ones have no cycle.
    """

    nodes: tuple[str, ...]
    forbidden: np.ndarray
    required: np.ndarray

    @classmethod
    def none(cls, nodes: tuple[str, ...]) -> GraphKnowledge:
        """Nothing is known."""
        empty = np.zeros((len(nodes), len(nodes)), dtype=bool)
        return cls(tuple(nodes), empty, empty.copy())

    def allows(self, dags: np.ndarray) -> np.ndarray:
        """Whether graphs `[..., L, L]` agree with it, bool `[...]`."""
        edges = dags.astype(bool)
        agrees: np.ndarray = ~(edges & self.forbidden).any((-1, -2)) & ~(~edges & self.required).any((-1, -2))
        return agrees

    def parent_sets(self) -> np.ndarray:
        """Which sets of parents each node may have, bool `[L, 2^L]`; bit k of a set stands for node k."""
        n_nodes = len(self.nodes)
        sets = np.arange(2**n_nodes)
        bits = (1 << np.arange(n_nodes))[:, None]
        banned = (bits * (self.forbidden | np.eye(n_nodes, dtype=bool))).sum(0)[:, None]
        needed = (bits * self.required).sum(0)[:, None]
        allowed: np.ndarray = ((sets & banned) == 0) & ((sets & needed) == needed)
        return allowed


def graph_knowledge(config: KnowledgeConfig, nodes: Sequence[str]) -> GraphKnowledge:
    """What is declared of the graph over some nodes, as edges that are not there and edges that are.

    Args:
        config: The declarations.
        nodes: Names of the nodes, in the order of the matrices.

    Raises:
        ValueError: Declarations that contradict each other, or that are about nodes that are not there; the message
            names them. Forbidding every edge is no contradiction.
    """
    nodes = tuple(nodes)
    forbidden = _edges("knowledge.forbid", config.forbid, nodes)
    required = _edges("knowledge.require", config.require, nodes)
    designed = _designed(config.designed, nodes)
    against_tiers = _against_tiers(config.tiers, nodes)
    _refuse(required & forbidden, nodes, "that knowledge.forbid does not name")
    _refuse(required & designed, nodes, "that lead into no node of knowledge.designed, which has no causes")
    _refuse(required & against_tiers, nodes, "that lead from no later tier of knowledge.tiers to an earlier one")
    _refuse_cycle(required, nodes)
    return GraphKnowledge(nodes, forbidden | designed | against_tiers, required)


def _edges(name: str, texts: Iterable[str], nodes: tuple[str, ...]) -> np.ndarray:
    found = np.zeros((len(nodes), len(nodes)), dtype=bool)
    for text in texts:
        cause, effect = read_edge(name, text, nodes)
        if cause == effect:
            raise ValueError(f"{name}: expected edges between two nodes, got {text!r}; no node causes itself")
        found[nodes.index(cause), nodes.index(effect)] = True
    return found


def _designed(designed: Iterable[str], nodes: tuple[str, ...]) -> np.ndarray:
    """Every edge into a designed node."""
    _check_nodes("knowledge.designed", designed, nodes)
    into = np.isin(nodes, list(designed))
    return np.tile(into, (len(nodes), 1)) & ~np.eye(len(nodes), dtype=bool)


def _against_tiers(tiers: Sequence[Sequence[str]], nodes: tuple[str, ...]) -> np.ndarray:
    """Every edge from a later tier to an earlier one."""
    names = [node for tier in tiers for node in tier]
    _check_nodes("knowledge.tiers", names, nodes)
    twice = next((node for node, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"knowledge.tiers: expected every node in one tier at most, got {twice!r} twice")
    tier = np.full(len(nodes), np.nan)  # no comparison with it is true
    for number, members in enumerate(tiers):
        tier[[nodes.index(node) for node in members]] = number
    later: np.ndarray = tier[:, None] > tier[None, :]
    return later


def _check_nodes(name: str, names: Iterable[str], nodes: tuple[str, ...]) -> None:
    odd = next((node for node in names if node not in nodes), None)
    if odd is not None:
        raise ValueError(f"{name}: expected nodes among {', '.join(nodes)}, got {odd!r}")


def _refuse(contradictions: np.ndarray, nodes: tuple[str, ...], expected: str) -> None:
    if contradictions.any():
        cause, effect = np.argwhere(contradictions)[0]
        edge = edge_text(nodes[cause], nodes[effect])
        raise ValueError(f"knowledge.require: expected edges {expected}, got {edge}; leave one of the two out")


def _refuse_cycle(required: np.ndarray, nodes: tuple[str, ...]) -> None:
    if not bool(is_acyclic(required)):
        cycle = "->".join(nodes[node] for node in _cycle(required))
        raise ValueError(f"knowledge.require: expected edges without a cycle, got {cycle}; leave one of them out")


def _cycle(edges: np.ndarray) -> list[int]:
    """A cycle of a graph that has one, its first node once more at the end."""
    left = edges.copy()
    while (ends := ~left.any(1) & left.any(0)).any():
        left[:, ends] = False
    path = [int(np.flatnonzero(left.any(1))[0])]
    while path[-1] not in path[:-1]:
        path.append(int(np.flatnonzero(left[path[-1]])[0]))
    return path[path.index(path[-1]) :]
