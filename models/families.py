r"""Conditional tables of every family (a node with a set of parents) over a few categorical nodes, side by side.

A graph G takes one table per node, that of its parents: $p_G(c) = \prod_\ell \theta_{\ell \mid S_\ell}(c_\ell \mid
c_{S_\ell})$. Two graphs that give a node the same parents share its table; priors that keep this (parameter
modularity: Heckerman, Geiger and Chickering 1995) need one table per family, not one per graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

__all__ = ["FamilyTables", "log_beta"]


class FamilyTables(nn.Module):
    """Where the entries of all families' tables stand; holds no parameters, and nothing that a checkpoint needs.

    The tables of node l are one tensor `[K_l, C_l]`: a row (a column of the conditional table) per outcome of the
    parents, one set of parents after the other. Sets of parents are numbered by the bits of their nodes, without l.

    Args:
        outcomes: Outcomes of each node.
    """

    entry: Tensor
    sets: Tensor

    def __init__(self, outcomes: Sequence[int]) -> None:
        super().__init__()
        self.outcomes = tuple(outcomes)
        n_nodes = len(self.outcomes)
        parents = [[s for s in range(2**n_nodes) if not s >> node & 1] for node in range(n_nodes)]
        self.register_buffer("sets", torch.tensor(parents), persistent=False)
        cells = torch.cartesian_prod(*(torch.arange(size) for size in self.outcomes)).reshape(-1, n_nodes)
        layouts = [self._layout(node, parents[node], cells) for node in range(n_nodes)]
        self.register_buffer("entry", torch.stack([entry for entry, _ in layouts]), persistent=False)
        for node, (_, owner) in enumerate(layouts):
            self.register_buffer(f"owner_{node}", owner, persistent=False)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, L."""
        return len(self.outcomes)

    def owner(self, node: int) -> Tensor:
        """Number of the set of parents that each row of the tables of a node belongs to, `[K_l]`."""
        return getattr(self, f"owner_{node}")

    def concentration(self, equivalent_sample_size: float) -> list[Tensor]:
        """BDeu: `s / (C_l |rows of the family|)` in every entry, per node `[K_l, C_l]`."""
        return [
            (equivalent_sample_size / (size * torch.bincount(self.owner(node))))[self.owner(node), None].repeat(1, size)
            for node, size in enumerate(self.outcomes)
        ]

    def counts(self, cell_count: Tensor) -> list[Tensor]:
        """Counts of every family, per node `[K_l, C_l]`, from those of the cells, `[C]`."""
        return [self._sum(node, cell_count) for node in range(self.n_nodes)]

    def log_conditionals(self, log_tables: Sequence[Tensor]) -> Tensor:
        """log θ(c_l | c_S) of every node, set of parents and cell: `[L, 2^(L-1), C]` from per node `[K_l, C_l]`."""
        return torch.stack([table.flatten()[self.entry[node]] for node, table in enumerate(log_tables)])

    def members(self, dags: Tensor) -> Tensor:
        """Number of the set of parents of every node, `[G, L]`, from graphs `[G, L, L]` (row = cause)."""
        bits = 2 ** torch.arange(self.n_nodes, device=dags.device)
        parents = (dags.long() * bits[:, None]).sum(-2)
        return (self.sets[None] == parents[..., None]).long().argmax(-1)

    def log_joints(self, log_tables: Sequence[Tensor], members: Tensor) -> Tensor:
        """log p_G over the cells, `[G, C]`, of graphs that are given by `members`, `[G, L]`."""
        nodes = torch.arange(self.n_nodes, device=members.device)
        return self.log_conditionals(log_tables)[nodes, members].sum(1)

    def log_evidence(self, counts: Sequence[Tensor], concentration: Sequence[Tensor]) -> Tensor:
        """log marginal likelihood of (expected) counts with Dirichlet tables, `[L, 2^(L-1)]`: BDeu for its prior.

        Args:
            counts: Per node `[K_l, C_l]`.
            concentration: Dirichlet parameters, of the same shapes.
        """
        rows = [log_beta(a + m) - log_beta(a) for m, a in zip(counts, concentration, strict=True)]
        return self.family_sums(rows)

    def family_sums(self, rows: Sequence[Tensor]) -> Tensor:
        """Sum over the rows of each family, `[L, 2^(L-1)]`, of a number per row, `[K_l]` per node."""
        n_sets = self.sets.shape[1]
        return torch.stack([r.new_zeros(n_sets).index_add(0, self.owner(node), r) for node, r in enumerate(rows)])

    def _layout(self, node: int, sets: Sequence[int], cells: Tensor) -> tuple[Tensor, Tensor]:
        """Flat position of each cell in the table of each set `[sets, C]`, and the set of each row `[K_l]`."""
        entries, owners, first = [], [], 0
        for number, parents in enumerate(sets):
            members = [k for k in range(self.n_nodes) if parents >> k & 1]
            row = torch.zeros(len(cells), dtype=torch.long)
            for k in members:
                row = row * self.outcomes[k] + cells[:, k]
            n_rows = math.prod(self.outcomes[k] for k in members)
            entries.append((first + row) * self.outcomes[node] + cells[:, node])
            owners.append(torch.full((n_rows,), number))
            first += n_rows
        return torch.stack(entries), torch.cat(owners)

    def _sum(self, node: int, cell_count: Tensor) -> Tensor:
        index = self.entry[node]
        flat = cell_count.new_zeros(len(self.owner(node)) * self.outcomes[node])
        return flat.index_add(0, index.flatten(), cell_count.repeat(len(index))).reshape(-1, self.outcomes[node])


def log_beta(concentration: Tensor) -> Tensor:
    """log of the multivariate beta function along the last axis: the constant of a Dirichlet distribution."""
    return torch.lgamma(concentration).sum(-1) - torch.lgamma(concentration.sum(-1))
