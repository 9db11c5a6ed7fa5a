"""The graph over the nodes, with p(N): learned by gradients, or a hard graph with tables in closed form."""

from models.graph.base import EDGE_THRESHOLD, NodeGraph
from models.graph.hodge import HodgeGraph

__all__ = ["EDGE_THRESHOLD", "HodgeGraph", "NodeGraph"]
