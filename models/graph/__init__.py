"""The graph over the nodes, with p(N): learned by gradients, or a hard graph with tables in closed form."""

from models.graph.base import EDGE_THRESHOLD, NodeGraph, ScoreForm
from models.graph.bayesian import BayesianGraph
from models.graph.constraints import EdgeConstraints
from models.graph.hodge import HodgeGraph
from models.graph.table import TableGraph

__all__ = ["EDGE_THRESHOLD", "BayesianGraph", "EdgeConstraints", "HodgeGraph", "NodeGraph", "ScoreForm", "TableGraph"]
