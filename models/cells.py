"""Pyro sites for N: one site over all cells, or one site per node in causal order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import pyro
import pyro.distributions as dist
import torch
from pyro.ops.indexing import Vindex
from torch import Tensor
from torch.distributions import Distribution

__all__ = [
    "CellSites",
    "cell_index",
    "normalised_categorical",
    "sample_cell",
    "sample_nodes",
    "sample_nodes_jointly",
]

CellSites = Literal["cells", "nodes"]

_ENUMERATE = {"enumerate": "parallel"}


def cell_index(values: Sequence[Tensor], outcomes: Sequence[int]) -> Tensor:
    """Row-major index of the cell with these node values."""
    strides = [math.prod(outcomes[node + 1 :]) for node in range(len(outcomes))]
    terms = [value * stride for value, stride in zip(values, strides, strict=True)]
    return torch.stack(torch.broadcast_tensors(*terms)).sum(0) if len(terms) > 1 else terms[0]


def normalised_categorical(log_probs: Tensor) -> dist.Categorical:
    """`dist.Categorical(logits=log_probs)` for `log_probs` `[*batch, C]` that are normalised: not done once more."""
    made = dist.Categorical.__new__(dist.Categorical)
    made.logits = made._param = log_probs
    made._num_events = log_probs.shape[-1]
    Distribution.__init__(made, log_probs.shape[:-1], validate_args=False)
    return made


def sample_cell(logits: Tensor, are_normalised: bool = False) -> Tensor:
    """One enumerated site `N` over cells; `logits` is `[*batch, C]`."""
    cells = normalised_categorical(logits) if are_normalised else dist.Categorical(logits=logits)
    return pyro.sample("N", cells, infer=dict(_ENUMERATE))


def sample_nodes(
    names: Sequence[str], log_tables: Tensor, order: Sequence[int], log_allowed: Tensor | None = None
) -> Tensor:
    """One enumerated site `N_NAME` per node, causes first; returns the index of the cell.

    Args:
        names: Names of the nodes.
        log_tables: log p(N_l | parents), `[L, C_1, ..., C_L]`, or one for each sample, `[batch, L, C_1, ..., C_L]`.
        order: A causal order: table l may depend on the nodes before l in it only.
        log_allowed: log 1[cell is possible] per sample, `[batch, C]`; a factor of the last site. None: all are.
    """
    values = [torch.zeros((), dtype=torch.long, device=log_tables.device) for _ in names]
    outcomes = log_tables.shape[-len(names) :]
    for node in order:
        others = tuple(value for k, value in enumerate(values) if k != node)
        logits = _given(log_tables.select(-1 - len(names), node), node, others)
        if log_allowed is not None and node == order[-1]:
            logits = logits + _given(log_allowed.unflatten(-1, outcomes), node, others)
        values[node] = pyro.sample(f"N_{names[node]}", normalised_categorical(logits), infer=dict(_ENUMERATE))
    return cell_index(values, outcomes)


def _given(table: Tensor, node: int, others: tuple[Tensor, ...]) -> Tensor:
    """The part of a table `[C_1, ..., C_L]`, or `[batch, C_1, ..., C_L]`, at values of all nodes but one."""
    if table.dim() == len(others) + 1:
        return Vindex(table.movedim(node, -1))[(*others, slice(None))]
    rows = torch.arange(len(table), device=table.device)
    return Vindex(table.movedim(node + 1, -1))[(rows, *others, slice(None))]


def sample_nodes_jointly(names: Sequence[str], logits: Tensor) -> Tensor:
    """The sites of `sample_nodes` for any joint distribution, by the chain rule in the given order.

    Args:
        names: Names of the nodes.
        logits: Joint logits per sample, `[batch, C_1, ..., C_L]`.
    """
    rows = torch.arange(len(logits), device=logits.device)
    values: list[Tensor] = []
    for node, name in enumerate(names):
        later = list(range(node + 2, logits.dim()))
        marginal = torch.logsumexp(logits, dim=later) if later else logits
        conditional = Vindex(marginal)[(rows, *values, slice(None))]
        values.append(pyro.sample(f"N_{name}", dist.Categorical(logits=conditional), infer=dict(_ENUMERATE)))
    return cell_index(values, logits.shape[1:])
