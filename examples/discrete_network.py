"""Discrete Bayesian networks with known tables: the truths behind generated data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

__all__ = ["DiscreteNetwork", "binary_network"]


@dataclass(frozen=True)
class DiscreteNetwork:
    r"""A directed acyclic graph over categorical nodes, with a table per node.

    $$p(N_1, \dots, N_L) = \prod_l p(N_l \mid \mathrm{pa}(N_l)).$$

    Attributes:
        levels: Names of the levels of each node; its order is that of the axes of all arrays.
        parents: Parents of each node.
        tables: p(node | parents), one axis per parent in the order of `parents`, then one for the node.

    Raises:
        ValueError: A table of another shape, or that is no distribution over the last axis.
    """

    levels: Mapping[str, tuple[str, ...]]
    parents: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, np.ndarray]

    def __post_init__(self) -> None:
        for node in self.levels:
            self._check(node)

    def _check(self, node: str) -> None:
        shape = tuple(len(self.levels[name]) for name in (*self.parents[node], node))
        table = np.asarray(self.tables[node])
        if table.shape != shape:
            raise ValueError(f"{node}: expected a table {shape}, parents first, got {table.shape}")
        if (table < 0).any() or not np.allclose(table.sum(-1), 1.0):
            raise ValueError(f"{node}: expected probabilities that sum to 1 over the last axis, got other sums")

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of each node."""
        return tuple(map(len, self.levels.values()))

    def conditional(self, node: str) -> np.ndarray:
        """p(node | parents) with one axis per node of the network; size 1 along those that it does not depend on."""
        involved = (*self.parents[node], node)
        order = [involved.index(name) for name in self.levels if name in involved]
        shape = [len(levels) if name in involved else 1 for name, levels in self.levels.items()]
        return np.transpose(self.tables[node], order).reshape(shape)

    @cached_property
    def joint(self) -> np.ndarray:
        """p(N), one axis per node."""
        return np.prod(np.broadcast_arrays(*map(self.conditional, self.levels)), axis=0)

    @property
    def adjacency(self) -> np.ndarray:
        """The graph: `[L, L]` of 0 and 1, row = cause, column = effect."""
        return np.array([[int(cause in self.parents[effect]) for effect in self.levels] for cause in self.levels])

    def draw(self, uniform: np.ndarray) -> dict[str, np.ndarray]:
        """Codes `[sample]` of each node, by inversion of the joint distribution over all cells in row-major order.

        Args:
            uniform: Numbers in [0, 1), `[sample]`.
        """
        edges = np.cumsum(self.joint)[:-1]
        codes = np.unravel_index(np.searchsorted(edges, uniform, side="right"), self.shape)
        return dict(zip(self.levels, codes, strict=True))

    def intervened(self, node: str, distribution: np.ndarray) -> DiscreteNetwork:
        """The network after do(node ~ distribution): the node listens to nothing, all other tables are as before.

        Args:
            node: Name of the target.
            distribution: Over the levels of the target, `[level]`.
        """
        return replace(self, parents={**self.parents, node: ()}, tables={**self.tables, node: distribution})

    def with_table(self, node: str, table: np.ndarray) -> DiscreteNetwork:
        """The same graph with another table for one node."""
        return replace(self, tables={**self.tables, node: table})


def binary_network(
    levels: Mapping[str, tuple[str, ...]], tree: Mapping[str, tuple[tuple[str, ...], object]]
) -> DiscreteNetwork:
    """A network of nodes with two levels each.

    Args:
        levels: Names of the levels of each node.
        tree: Per node, its parents and p(node = 1 | parents), one axis per parent.
    """
    ones = {node: np.asarray(probability, dtype=float) for node, (_, probability) in tree.items()}
    return DiscreteNetwork(
        levels=levels,
        parents={node: tree[node][0] for node in levels},
        tables={node: np.stack([1.0 - one, one], axis=-1) for node, one in ones.items()},
    )
