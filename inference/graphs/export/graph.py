"""A graph over named nodes, as it goes to other programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from inference.graphs.tables import conditional_table, member_of, parents_of

__all__ = ["ORIENTATION", "ExportedEdge", "ExportedGraph"]

ORIENTATION = "row -> column: an edge runs from the node of the row (cause) to that of the column (effect)"
"""Stated in every export."""


class ExportedEdge(NamedTuple):
    """An edge of the graph; of a line both directions have the same entry.

    Attributes:
        cause: Index of the node that it comes from; of a line the first node.
        effect: Index of the node that it goes to.
        is_directed: False: a line, whose direction is not identified.
        probability: p(cause -> effect); None where it is not known.
        adjacency_probability: p(joined).
        compelled_probability: p(this direction holds in the whole class).
        strength: Soft strength of the trained model.
    """

    cause: int
    effect: int
    is_directed: bool
    probability: float | None = None
    adjacency_probability: float | None = None
    compelled_probability: float | None = None
    strength: float | None = None

    def numbers(self) -> dict[str, float]:
        """What is known of it, by name."""
        names = ("probability", "adjacency_probability", "compelled_probability", "strength")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@dataclass(frozen=True)
class ExportedGraph:
    """A graph or an equivalence class.

    Attributes:
        nodes: Names of the L nodes, all different.
        outcomes: Names of the outcomes of each node; empty where they are not known.
        graph: `[L, L]` of 0 and 1, row = cause, column = effect; 1 both ways: a line, direction not identified.
        joint: p(N), `[C_1, ..., C_L]`, or None.
        edge_probability: p(i -> j), `[L, L]`, or None.
        compelled_probability: p(i -> j in the whole class), `[L, L]`, or None.
        strength: Soft strengths of the trained model, `[L, L]`, or None.
        note: What the graph is, and what its arrows assume.
        is_named: False: the nodes are one arbitrary reading of unnamed clusters.
    """

    nodes: tuple[str, ...]
    outcomes: tuple[tuple[str, ...], ...]
    graph: np.ndarray
    joint: np.ndarray | None = None
    edge_probability: np.ndarray | None = None
    compelled_probability: np.ndarray | None = None
    strength: np.ndarray | None = None
    note: str = ""
    is_named: bool = True

    def __post_init__(self) -> None:
        n_nodes = len(self.nodes)
        if len(set(self.nodes)) != n_nodes:
            raise ValueError(f"nodes: expected different names, got {', '.join(self.nodes)}; rename one")
        if self.graph.shape != (n_nodes, n_nodes):
            raise ValueError(f"graph: expected shape {(n_nodes, n_nodes)}, got {self.graph.shape}; one row per node")

    @property
    def dag(self) -> np.ndarray:
        """A directed acyclic graph of the class, `[L, L]`.

        Raises:
            ValueError: The class has none.
        """
        return member_of(self.graph)

    def as_dag(self) -> ExportedGraph:
        """The same with one graph of the class in place of the class."""
        if np.array_equal(self.dag, self.graph):
            return self
        return replace(
            self,
            graph=self.dag,
            note=f"{self.note} One graph of the class, whose lines have arbitrary arrows here.".strip(),
        )

    def parents(self, node: int) -> tuple[int, ...]:
        """Causes of a node in `dag`, in ascending order."""
        return parents_of(self.dag, node)

    def table(self, node: int) -> np.ndarray:
        """p(node | parents) along `dag`, `[*C_pa, C_l]`.

        Raises:
            ValueError: p(N) is not known.
        """
        if self.joint is None:
            raise ValueError(
                "joint: expected p(N) for conditional tables, got a graph without it; export another format"
            )
        return conditional_table(self.joint, node, self.parents(node))

    def edges(self) -> Iterator[ExportedEdge]:
        """Every edge once, lines from the node that comes first."""
        for i, j in np.argwhere(self.graph):
            is_directed = not self.graph[j, i]
            if is_directed or i < j:
                yield self.edge(int(i), int(j))

    def edge(self, cause: int, effect: int) -> ExportedEdge:
        """What is known of a pair of nodes, joined or not."""
        forward = _entry(self.edge_probability, cause, effect)
        backward = _entry(self.edge_probability, effect, cause)
        joined = None if forward is None or backward is None else forward + backward
        return ExportedEdge(
            cause,
            effect,
            not self.graph[effect, cause],
            forward,
            joined,
            _entry(self.compelled_probability, cause, effect),
            _entry(self.strength, cause, effect),
        )


def _entry(table: np.ndarray | None, row: int, column: int) -> float | None:
    return None if table is None else float(table[row, column])
