"""The posterior over graphs of a table of categories, as plain values."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from inference.command_line.graph_arguments import Arguments
from inference.data.category_table import CategoryTable, read_category_table
from inference.graphs.enumerated_posterior import Evidence
from inference.graphs.family_scores import family_scores
from inference.graphs.graph_posterior import posterior_of_scores
from inference.graphs.knowledge import GraphKnowledge, graph_knowledge
from inference.graphs.large_posterior import MOST_SUMMED
from inference.graphs.posterior import GraphPosterior, Score
from inference.results.graph_posterior import plain_posterior
from inference.results.graph_sensitivity import SENSITIVITY_SCORES, compared
from inference.training.side_information_config import KnowledgeConfig

__all__ = ["posterior_of_table"]

_MANY = 14


def posterior_of_table(path: Path, arguments: Arguments) -> dict[str, Any]:
    """What `inference.graph --data TABLE` finds (keys: docs/graph_tables.md).

    Args:
        path: The table.
        arguments: The command line.

    Raises:
        ValueError: No table of categories, or knowledge that contradicts itself or names other nodes.
    """
    table = read_category_table(path, arguments.columns)
    for note in table.notes:
        print(f"note: {path}: {note}", file=sys.stderr)
    knowledge = graph_knowledge(arguments.knowledge or KnowledgeConfig(), table.nodes)
    if len(table.nodes) > _MANY:
        print(f"note: {len(table.nodes)} columns: this takes minutes", file=sys.stderr)
    posterior = _posterior(table, arguments.score, knowledge, arguments.edge_prior)
    return {
        **plain_posterior(
            posterior, knowledge, table.outcomes, _sensitivity(table, knowledge, posterior, arguments.edge_prior)
        ),
        "edge_prior": arguments.edge_prior,
        "levels": dict(zip(table.nodes, map(list, table.levels), strict=True)),
    }


def _posterior(table: CategoryTable, score: Score, knowledge: GraphKnowledge, edge_prior: float) -> GraphPosterior:
    scores = family_scores(table.codes, table.outcomes, score, knowledge)
    n = len(table.codes)
    return posterior_of_scores(scores, knowledge, Evidence(score, n, n), edge_prior)


def _sensitivity(
    table: CategoryTable, knowledge: GraphKnowledge, posterior: GraphPosterior, edge_prior: float
) -> dict[str, Any] | None:
    """By the other scores, too; not where chains would have to run for each."""
    if len(table.nodes) > MOST_SUMMED:
        return None
    others = [score for score in SENSITIVITY_SCORES if score != posterior.score]
    return compared([posterior, *(_posterior(table, score, knowledge, edge_prior) for score in others)])
