"""The graph over the nodes, with p(N): learned by gradients, or a hard graph with tables in closed form."""

from models.graph.base import EDGE_THRESHOLD, NodeGraph, ScoreForm
from models.graph.bayesian import BayesianGraph
from models.graph.constraints import EdgeConstraints
from models.graph.dagma import DagmaGraph
from models.graph.free import FreeGraph
from models.graph.hodge import HodgeGraph
from models.graph.nocurl import NocurlGraph
from models.graph.notears import NotearsGraph
from models.graph.relaxed import RelaxedGraph
from models.graph.table import TableGraph

__all__ = [
    "EDGE_THRESHOLD",
    "BayesianGraph",
    "DagmaGraph",
    "EdgeConstraints",
    "FreeGraph",
    "HodgeGraph",
    "NocurlGraph",
    "NodeGraph",
    "NotearsGraph",
    "RelaxedGraph",
    "ScoreForm",
    "TableGraph",
]
