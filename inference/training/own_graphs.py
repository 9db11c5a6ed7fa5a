"""What a graph of a user's own has to agree with: what is known of edges, and the setting in whose place it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from inference.graphs.edge_text import edge_text
from inference.graphs.knowledge import GraphKnowledge
from inference.training.graph_choice import known_of_graph
from models.graph import EdgeConstraints, FreeGraph, NodeGraph, TableGraph

if TYPE_CHECKING:
    from inference.training.config import FitConfig

__all__ = ["check_known", "check_unset"]


def check_unset(config: FitConfig) -> None:
    """Refuse a graph that is configured beside a prior of one's own that makes another.

    Raises:
        ValueError: There is one.
    """
    kind = config.model.graph
    if kind != "hodge":
        raise ValueError(
            f"model.graph: expected its default hodge with a prior that makes a graph of its own, got {kind}; leave "
            "one of the two out"
        )


def check_known(subject: str, graph: NodeGraph, config: FitConfig) -> None:
    """Refuse a graph that is not told of what is known of edges, and would contradict it without a word.

    A hard graph has its edges from the start. Another one holds them as `constraints`. Free weights claim no edge.

    Args:
        subject: Beginning of the message.
        graph: The graph.
        config: The configuration.

    Raises:
        ValueError: It does not keep to it.
    """
    known = known_of_graph(config)
    if isinstance(graph, FreeGraph) or not (known.forbidden.any() or known.required.any()):
        return
    broken = _broken_edges(graph, known) if isinstance(graph, TableGraph) else _unknown_to(graph, known)
    if broken:
        raise ValueError(
            f"{subject}: expected a graph that keeps to what is known of edges, got {broken}; leave the knowledge out, "
            "or make the graph by a function of the configuration that looks at it (inference/training/graph_choice.py)"
        )


def _broken_edges(graph: TableGraph, known: GraphKnowledge) -> str:
    edges = graph.adjacency().cpu().numpy().astype(bool)
    wrong = np.argwhere((edges & known.forbidden) | (~edges & known.required))
    return ", ".join(
        f"{'' if edges[i, j] else 'no '}{edge_text(known.nodes[i], known.nodes[j])}" for i, j in wrong.tolist()
    )


def _unknown_to(graph: NodeGraph, known: GraphKnowledge) -> str:
    constraints = getattr(graph, "constraints", None)
    if isinstance(constraints, EdgeConstraints):
        forbidden, required = (torch.from_numpy(edges) for edges in (known.forbidden, known.required))
        missing = (forbidden & ~constraints.forbidden.cpu()) | (required & ~constraints.required.cpu())
        if not bool(missing.any()):
            return ""
    return f"a {type(graph).__name__} that does not hold it as constraints"
