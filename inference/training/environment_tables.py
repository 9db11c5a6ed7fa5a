"""What environments tell of their targets, written into a model after training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from models.causal_pima import CausalPIMA
from models.graph.base import conditional_table

__all__ = ["take_over_environments"]


def take_over_environments(
    model: CausalPIMA, labelling: Mapping[str, Any], names: Sequence[str], nodes: Sequence[str]
) -> None:
    """Give the target of every environment its own table; all other factors of p(N | e) are those of the graph.

    Under do-type interventions it is the marginal of the target, under soft ones its table given the parents that it
    has in the graph of the model.

    Args:
        model: With its final graph.
        labelling: What environments told (`Labelling.to_plain`); those that it does not know follow p(N).
        names: Names of the environments in the order of their codes, the first without intervention.
        nodes: Names of the nodes by which the labelling calls them.
    """
    told, targets = labelling.get("environment_joint", {}), labelling["details"].get("targets", {})
    known = [name if name in told and name in targets else None for name in names]
    if not any(known):
        model.environments.clear()
        return
    like = model.graph.log_joint()
    positions = [None if name is None else list(nodes).index(targets[name]) for name in known]
    is_soft = labelling["details"].get("kind") == "soft"

    def own(name: str, node: int) -> Tensor:
        parents = model.graph.adjacency()[:, node]
        joint = torch.tensor(told[name], dtype=torch.float64, device=like.device)
        return conditional_table(joint, node, parents if is_soft else torch.zeros_like(parents))

    tables = [
        None if name is None or node is None else own(name, node) for name, node in zip(known, positions, strict=True)
    ]
    model.environments.replace(positions, tables, like.detach())
