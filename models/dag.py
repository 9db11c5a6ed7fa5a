"""Joint distribution of categorical nodes over a soft directed acyclic graph: pure functions.

Source: paper, section 2.2 and Algorithm 1, in the sort-free form (docs/dag.md). Rows are causes and columns
are effects: entry `[i, j]` belongs to the edge i -> j.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

__all__ = [
    "GROWTH",
    "PROGRESS",
    "AugmentedLagrangian",
    "FamilyTables",
    "acyclic_edges",
    "augmented_cost",
    "closure",
    "conditional_log_tables",
    "curl_free_potential",
    "edge_strength",
    "log_beta",
    "log_determinant_cycles",
    "log_joint",
    "log_normalise_tables",
    "polynomial_cycles",
    "spectral_radius",
    "trace_exponential",
]


def edge_strength(
    node_score: Float[Tensor, " nodes"], edge_weight: Float[Tensor, "nodes nodes"], temperature: float | Tensor
) -> Float[Tensor, "nodes nodes"]:
    r"""Soft indicator of every edge, `E_ij = ReLU(tanh(B_ij (ξ_j - ξ_i) / β))` (paper, equation 4).

    Computed as `tanh(B_ij ReLU(ξ_j - ξ_i) / β)`, which is equal for B >= 0 and has the right one-sided derivative
    in B at B = 0, so that an edge that was switched off can come back.

    Args:
        node_score: ξ; its order is the causal order.
        edge_weight: B, symmetric and non-negative; zero switches the edge off at every temperature.
        temperature: β > 0.

    Returns:
        E in [0, 1]; its support is acyclic, whatever the arguments.
    """
    ascent = torch.relu(node_score.unsqueeze(0) - node_score.unsqueeze(1))
    return torch.tanh(edge_weight * ascent / temperature)


def log_normalise_tables(conditional_logits: Tensor) -> Tensor:
    """log W: each `conditional_logits[l]` normalised over the outcomes of node l (its own axis).

    Args:
        conditional_logits: `[L, C_1, ..., C_L]`.
    """
    tables = [torch.log_softmax(logits, dim=node) for node, logits in enumerate(conditional_logits)]
    return torch.stack(tables)


def _mix_towards_mean(log_table: Tensor, kept: Tensor, is_one: Tensor, axis: int) -> Tensor:
    """log M_k(e) W with `M_k(e) W = e W + (1 - e) mean_k W`, finite for every e in [0, 1].

    Args:
        log_table: log W.
        kept: e where e < 1, zero elsewhere.
        is_one: Where e = 1: W stays as it is, whatever underflows.
        axis: The axis k.
    """
    log_share = torch.log_softmax(log_table, axis)
    log_mixed_share = torch.log(kept * log_share.exp() + (1 - kept) / log_table.shape[axis])
    return log_table + torch.where(is_one, 0.0, log_mixed_share - log_share)


def conditional_log_tables(conditional_logits: Tensor, strength: Float[Tensor, "nodes nodes"]) -> Tensor:
    r"""log p(N_l | parents of N_l) for every node, `T^l = (∏_{k≠l} M_k(E_kl)) W^l`.

    `M_k(e) W = e W + (1 - e) mean_k W` averages a non-parent out uniformly and keeps a parent. The M_k commute, so no
    sorting is needed: E_kl = 0 for later k does the averaging that Algorithm 1 does by order.

    Args:
        conditional_logits: Unnormalised log W, `[L, C_1, ..., C_L]`; table l is normalised over axis l.
        strength: E, `[L, L]`, with acyclic support.

    Returns:
        `[L, C_1, ..., C_L]`; constant along the axes of nodes that are no parents.
    """
    n_nodes = len(strength)
    log_tables = log_normalise_tables(conditional_logits)
    is_one = torch.eye(n_nodes, dtype=torch.bool, device=strength.device) | (strength >= 1)
    kept = torch.where(is_one, 0.0, strength)
    per_cause = (n_nodes, n_nodes, *[1] * n_nodes)
    for cause, of_cause in enumerate(zip(kept.reshape(per_cause), is_one.reshape(per_cause), strict=True)):
        log_tables = _mix_towards_mean(log_tables, *of_cause, axis=cause + 1)
    return log_tables


def log_joint(conditional_logits: Tensor, strength: Float[Tensor, "nodes nodes"]) -> Tensor:
    r"""log p(N) = Σ_l log T^l over all cells, `[C_1, ..., C_L]` (paper, Algorithm 1 with the index E_kl).

    Equals the mixture over independent edge masks, `E_{G ~ ∏ Bernoulli(E_ij)} [p_G(N)]`, and sums to one whenever the
    support of E is acyclic.

    Args:
        conditional_logits: Unnormalised log W, `[L, C_1, ..., C_L]`.
        strength: E, `[L, L]`.
    """
    return conditional_log_tables(conditional_logits, strength).sum(0)


# How far a weighted graph is from having no cycle, and which edges are left without one.
#
# Source: Zheng et al. 2018 (NOTEARS).


def trace_exponential(weight: Float[Tensor, "nodes nodes"]) -> Float[Tensor, ""]:
    r"""$h(A) = \mathrm{tr}\, e^{A \circ A} - L$ (Zheng et al. 2018, theorem 1), 0 where A has no cycle, else above 0.

    The k-th term of the series counts closed walks of k steps, with squared weights, divided by k!. The gradient is
    $(e^{A \circ A})^T \circ 2 A$.

    Args:
        weight: A, row = cause, column = effect.
    """
    return torch.linalg.matrix_exp(weight.square()).diagonal().sum() - len(weight)


@torch.no_grad()
def acyclic_edges(
    strength: Float[Tensor, "nodes nodes"], threshold: float, required: Bool[Tensor, "nodes nodes"] | None = None
) -> Bool[Tensor, "nodes nodes"]:
    """Edges above a threshold; as long as there is a cycle, the weakest of those that lie on one is taken out.

    Args:
        strength: Row = cause, column = effect; the diagonal is not looked at.
        threshold: What is not above it is no edge.
        required: Edges that are there whatever their strength; without a cycle. None: none.
    """
    required = torch.zeros_like(strength, dtype=torch.bool) if required is None else required
    edges = ((strength > threshold) | required) & ~torch.eye(len(strength), dtype=torch.bool, device=strength.device)
    while bool((on_cycle := edges & closure(edges).T & ~required).any()):
        weakest = torch.where(on_cycle, strength, torch.inf).argmin()
        edges.view(-1)[weakest] = False
    return edges


def closure(edges: Bool[Tensor, "nodes nodes"]) -> Bool[Tensor, "nodes nodes"]:
    """Where a path of at least one edge leads."""
    reach = edges.clone()
    for middle in range(len(edges)):
        reach |= reach[:, middle, None] & reach[None, middle, :]
    return reach


# An augmented Lagrangian, which drives a violation h >= 0 to 0 (Zheng et al. 2018, NOTEARS).


PROGRESS = 0.25
"""The penalty is stiff enough where h fell to such a share of what it was."""

GROWTH = 10.0
"""Factor of the penalty where it is not."""


def augmented_cost(violation: Tensor, multiplier: Tensor, penalty: Tensor) -> Tensor:
    r"""$\alpha h + \tfrac{\rho}{2} h^2$.

    Args:
        violation: h.
        multiplier: $\alpha$.
        penalty: $\rho$.
    """
    return multiplier * violation + 0.5 * penalty * violation.square()


class AugmentedLagrangian(nn.Module):
    r"""Multiplier and penalty of a constraint $h = 0$: $\alpha h + \tfrac{\rho}{2} h^2$.

    $\alpha$ grows by $\rho h$ in every round, and $\rho$ tenfold where $h$ did not fall to a quarter, up to a largest
    one: stochastic gradient steps, unlike those of NOTEARS, leave $h$ as large as their own length, and would be thrown
    off by a penalty that knows no limit. `NotearsGraph` keeps to the schedule of NOTEARS, in which either the one grows
    or the other. Rounds with $h$ below a tolerance change nothing. The state is in buffers, so that a run that goes on
    from a checkpoint goes on alike.

    Args:
        penalty: First $\rho$.
        most: Largest $\rho$.
        tolerance: h that counts as 0.
    """

    multiplier: Tensor
    penalty: Tensor
    last: Tensor

    def __init__(self, penalty: float = 1.0, most: float = 1e4, tolerance: float = 1e-6) -> None:
        super().__init__()
        self.most, self.tolerance = most, tolerance
        self.register_buffer("multiplier", torch.tensor(0.0))
        self.register_buffer("penalty", torch.tensor(float(penalty)))
        self.register_buffer("last", torch.tensor(torch.inf))

    def cost(self, violation: Tensor) -> Tensor:
        """What the violation h costs now, to be added to what is minimised."""
        return augmented_cost(violation, self.multiplier, self.penalty)

    @torch.no_grad()
    def advance(self, violation: Tensor) -> None:
        """End a round with this violation."""
        if violation <= self.tolerance:
            return
        self.multiplier.add_(self.penalty * violation)
        if violation > PROGRESS * self.last:
            self.penalty.mul_(GROWTH).clamp_(max=self.most)
        self.last.copy_(violation)


# Two more measures of cycles, beside the one of NOTEARS (`models.dag`), and the order that paths give.
#
# With $A = E \circ E$, 0 exactly where the support of E has no cycle, and positive else:
#
# $$h_{\mathrm{poly}} = \operatorname{tr}(I + A / L)^L - L, \qquad
#   h_{\mathrm{logdet}} = -\log\det(sI - A) + L \log s.$$
#
# Sources: Yu et al. 2019, ICML (poly); Bello et al. 2022, NeurIPS (logdet, for a spectral radius of A below s).


def polynomial_cycles(strength: Float[Tensor, "nodes nodes"]) -> Float[Tensor, ""]:
    """h_poly, which NoCurl begins with."""
    n_nodes = len(strength)
    step = torch.eye(n_nodes, dtype=strength.dtype, device=strength.device) + strength.square() / n_nodes
    return torch.linalg.matrix_power(step, n_nodes).trace() - n_nodes


def log_determinant_cycles(strength: Float[Tensor, "nodes nodes"], s: float) -> Float[Tensor, ""]:
    """h_logdet of DAGMA; a number that means nothing where `spectral_radius` is not below s.

    Args:
        strength: E.
        s: Radius of the domain, > 0.
    """
    domain = s * torch.eye(len(strength), dtype=strength.dtype, device=strength.device) - strength.square()
    return len(strength) * math.log(s) - torch.linalg.slogdet(domain).logabsdet


def spectral_radius(strength: Float[Tensor, "nodes nodes"]) -> float:
    """Largest modulus of an eigenvalue of E∘E; 0 without cycles."""
    return float(torch.linalg.eigvals(strength.detach().square().double()).abs().max())


def curl_free_potential(edges: Bool[Tensor, "nodes nodes"]) -> Float[Tensor, " nodes"]:
    r"""φ whose gradient φ_j - φ_i is nearest to who leads where, on the complete graph (Yu et al. 2021, ICML).

    With C_ij = 1 where a path leads from i to j, the Hodge decomposition of C - Cᵀ has the gradient of
    $\varphi = -\frac{1}{L} \sum_j (C_{\cdot j} - C_{j \cdot})$, up to a constant. φ grows along every path that none
    leads back.
    """
    leads = closure(edges).to(torch.get_default_dtype())
    return (leads.sum(0) - leads.sum(1)) / len(edges)


# Conditional tables of every family (a node with a set of parents) over a few categorical nodes, side by side.
#
# A graph G takes one table per node, that of its parents: $p_G(c) = \prod_\ell \theta_{\ell \mid S_\ell}(c_\ell \mid
# c_{S_\ell})$. Two graphs that give a node the same parents share its table; priors that keep this (parameter
# modularity: Heckerman, Geiger and Chickering 1995) need one table per family, not one per graph.


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
