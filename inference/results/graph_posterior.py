"""The posterior over graphs of a fit, and its plain form in `summary.json` and `inference.graph`'s JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from inference.data.categories import ROWS_PER_CELL
from inference.graphs.edge_text import edge_text
from inference.graphs.enumerated_posterior import EdgeLogOdds
from inference.graphs.knowledge import GraphKnowledge, graph_knowledge
from inference.graphs.mixture_posterior import mixture_posterior
from inference.graphs.posterior import GraphPosterior, Score
from inference.results.arrays import FitArrays
from inference.results.node_samples import node_samples

__all__ = ["MOST_LISTED_CLASSES", "declared_knowledge", "graph_posterior", "plain_posterior"]

MOST_LISTED_CLASSES = 100
"""So many classes of the set that carries 95 % of the mass are listed in files; their number is told."""


def graph_posterior(
    fit: FitArrays,
    knowledge: GraphKnowledge | None = None,
    score: Score | None = None,
    edge_log_odds: EdgeLogOdds = 0.0,
) -> GraphPosterior | None:
    """The posterior over the graphs of a fit; None where its nodes have no meaning, or no training sample counts.

    Args:
        fit: A finished fit.
        knowledge: What is known of the graph; by default what the configuration of the fit declares.
        score: BIC by default.
        edge_log_odds: Log-odds of every edge of a declared prior; 0: all possible graphs alike.

    Raises:
        ValueError: More nodes than can be scored, or BDeu without an equivalent sample size.
    """
    samples = node_samples(fit)
    if samples is None or not (fit.identifiability or {}).get("is_named", False):
        return None
    known = declared_knowledge(fit.attributes, samples.nodes) if knowledge is None else knowledge
    return mixture_posterior(samples, score or Score(), known, edge_log_odds)


def declared_knowledge(attributes: Mapping[str, Any], nodes: Sequence[str]) -> GraphKnowledge:
    """What the configuration of a fit declares of its graph.

    Args:
        attributes: Of the fit, or of its file: `config` has the settings as plain values.
        nodes: Names of the nodes.

    Raises:
        ValueError: Declarations that contradict each other.
    """
    from inference.training.side_information_config import KnowledgeConfig  # its package imports this one

    plain = (attributes.get("config") or {}).get("knowledge") or {}
    tiers = tuple(tuple(tier) for tier in plain.get("tiers", ()))
    others = {name: tuple(plain.get(name, ())) for name in ("forbid", "require", "designed")}
    return graph_knowledge(KnowledgeConfig(tiers=tiers, **others), nodes)


def plain_posterior(
    posterior: GraphPosterior,
    knowledge: GraphKnowledge,
    outcomes: Sequence[int],
    sensitivity: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A posterior as plain values (keys: docs/graph_posterior.md).

    Args:
        posterior: The posterior.
        knowledge: What was known of the graph.
        outcomes: Number of outcomes of each node.
        sensitivity: How much depends on the score (`graph_sensitivity`); None: it was not looked at.
    """
    listed = posterior.classes[:MOST_LISTED_CLASSES]
    return {
        "nodes": list(posterior.nodes),
        "edge_probability": posterior.edge_probability.tolist(),
        "adjacency_probability": posterior.adjacency_probability.tolist(),
        "compelled_probability": posterior.compelled_probability.tolist(),
        "cpdag": np.asarray(posterior.best, dtype=int).tolist(),
        "score": posterior.score.name,
        "equivalent_sample_size": posterior.score.equivalent_sample_size,
        "log_marginal_likelihood": posterior.log_marginal_likelihood,
        "classes": [{"cpdag": found.graph.astype(int).tolist(), "probability": found.probability} for found in listed],
        "n_classes": len(posterior.classes),
        "method": posterior.method,
        "n_samples": posterior.n_samples,
        "n_independent": posterior.n_independent,
        "too_few_samples": [
            [posterior.nodes[i], posterior.nodes[j]]
            for i, j in combinations(range(len(outcomes)), 2)
            if ROWS_PER_CELL * outcomes[i] * outcomes[j] > posterior.n_independent
        ],
        "knowledge": _plain_knowledge(knowledge),
        "sensitivity": None if sensitivity is None else dict(sensitivity),
        "diagnostics": dict(posterior.diagnostics),
    }


def _plain_knowledge(knowledge: GraphKnowledge) -> dict[str, list[str]]:
    """Edges that are not there, and edges that are, as text."""
    own = np.eye(len(knowledge.nodes), dtype=bool)
    return {
        name: [edge_text(knowledge.nodes[i], knowledge.nodes[j]) for i, j in np.argwhere(edges & ~own)]
        for name, edges in (("forbidden", knowledge.forbidden), ("required", knowledge.required))
    }
