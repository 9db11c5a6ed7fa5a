"""Networks of pgmpy: one graph of the class with its conditional tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from inference.graphs.export.graph import ExportedGraph

__all__ = ["from_pgmpy", "to_pgmpy"]


def to_pgmpy(graph: ExportedGraph) -> Any:
    """A `pgmpy.models.DiscreteBayesianNetwork` with tables, along `ExportedGraph.dag`.

    Raises:
        ValueError: pgmpy is not installed, p(N) is not known, or the outcomes have no names.
    """
    network, table_type = _pgmpy()
    if graph.joint is None or not graph.outcomes:
        raise ValueError("graph: expected one with p(N) and outcomes, got one without; export another format")
    model = network()
    model.add_nodes_from(graph.nodes)
    model.add_edges_from((graph.nodes[i], graph.nodes[j]) for i, j in np.argwhere(graph.dag))
    model.add_cpds(*(_table(graph, node, table_type) for node in range(len(graph.nodes))))
    return model


def _pgmpy() -> tuple[Any, Any]:
    try:
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.models import DiscreteBayesianNetwork
    except ImportError as error:
        raise ValueError("pgmpy: expected it to be installed, got none; pip install pgmpy, or write BIF") from error
    return DiscreteBayesianNetwork, TabularCPD


def _table(graph: ExportedGraph, node: int, table_type: Any) -> Any:
    parents = graph.parents(node)
    values = graph.table(node).reshape(-1, len(graph.outcomes[node])).T
    names = {graph.nodes[index]: list(graph.outcomes[index]) for index in (node, *parents)}
    evidence = [graph.nodes[parent] for parent in parents] or None
    sizes = [len(graph.outcomes[parent]) for parent in parents] or None
    return table_type(graph.nodes[node], len(values), values, evidence, sizes, state_names=names)


def from_pgmpy(model: Any) -> ExportedGraph:
    """Graph, outcomes and p(N) of a `DiscreteBayesianNetwork`."""
    nodes = tuple(map(str, model.nodes()))
    outcomes = tuple(tuple(map(str, model.get_cpds(node).state_names[node])) for node in nodes)
    dag = np.zeros((len(nodes), len(nodes)), dtype=np.int64)
    for cause, effect in model.edges():
        dag[nodes.index(cause), nodes.index(effect)] = 1
    joint = np.ones([len(found) for found in outcomes])
    for node in nodes:
        cpd = model.get_cpds(node)
        axes = [nodes.index(str(name)) for name in cpd.variables]
        table = np.transpose(cpd.values, np.argsort(axes))
        joint = joint * table.reshape([joint.shape[axis] if axis in axes else 1 for axis in range(len(nodes))])
    return ExportedGraph(nodes, outcomes, dag, joint)
