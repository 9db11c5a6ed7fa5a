"""The graph over the nodes, with p(N): learned by gradients, or a hard graph with tables in closed form."""

from causalpima.models.graph.base import EDGE_THRESHOLD, EdgeConstraints, NodeGraph, ScoreForm
from causalpima.models.graph.bayesian import BayesianGraph
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.graph.relaxed import DagmaGraph, NocurlGraph, NotearsGraph, RelaxedGraph
from causalpima.models.graph.table import FreeGraph, TableGraph

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
