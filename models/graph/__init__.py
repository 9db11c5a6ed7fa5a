"""The graph over the nodes, with p(N): learned by gradients, or a hard graph with tables in closed form."""

from models.graph.base import EDGE_THRESHOLD, EdgeConstraints, NodeGraph, ScoreForm
from models.graph.bayesian import BayesianGraph
from models.graph.hodge import HodgeGraph
from models.graph.relaxed import DagmaGraph, NocurlGraph, NotearsGraph, RelaxedGraph
from models.graph.table import FreeGraph, TableGraph

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
