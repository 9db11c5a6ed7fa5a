"""Graphs for other programs: files and objects, every edge read row -> column, from cause to effect.

`ExportedGraph` holds a graph or an equivalence class over named nodes, with what is known of its edges and with p(N).
`write_graph` and `read_graph` choose the format by the ending of the file; `to_networkx`, `to_pgmpy` and
`to_causal_learn` make objects of these libraries, of which only networkx is required.
"""

from __future__ import annotations

from inference.graphs.export.causal_learn import from_causal_learn, to_causal_learn
from inference.graphs.export.files import ENDINGS, read_graph, write_graph
from inference.graphs.export.graph import ORIENTATION, ExportedEdge, ExportedGraph
from inference.graphs.export.networkx import from_networkx, to_networkx
from inference.graphs.export.pgmpy import from_pgmpy, to_pgmpy

__all__ = [
    "ENDINGS",
    "ORIENTATION",
    "ExportedEdge",
    "ExportedGraph",
    "from_causal_learn",
    "from_networkx",
    "from_pgmpy",
    "read_graph",
    "to_causal_learn",
    "to_networkx",
    "to_pgmpy",
    "write_graph",
]
