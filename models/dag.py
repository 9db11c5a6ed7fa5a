"""Joint distribution of categorical nodes over a soft directed acyclic graph: pure functions.

Source: paper, section 2.2 and Algorithm 1, in the sort-free form (docs/dag.md). Rows are causes and columns
are effects: entry `[i, j]` belongs to the edge i -> j.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["conditional_log_tables", "edge_strength", "log_joint", "log_normalise_tables"]


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
