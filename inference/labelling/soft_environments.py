"""Environments whose interventions are soft: over nodes that something else names, they direct edges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from inference.graphs.environment_likelihood import HiddenSamples, fit_environments
from inference.graphs.environment_posterior import EnvironmentGraphs, environment_posterior
from inference.graphs.knowledge import GraphKnowledge
from inference.graphs.mixture_likelihood import log_likelihood_ratio
from inference.labelling.environment_labeller import Environments
from inference.labelling.environment_masses import environment_counts
from inference.labelling.environment_search import target_maps
from inference.labelling.labelling import Clusters, Labelling
from inference.labelling.labelling_search import as_tables

__all__ = ["soft_labelling"]


def soft_labelling(
    environments: Environments, knowledge: GraphKnowledge, clusters: Clusters, base: Labelling | None
) -> Labelling:
    """What names the clusters, with the graph and the targets that the environments tell under these names.

    Soft interventions name nothing: under another labelling they would fit as well (docs/environments.md). Where labels
    leave a node without a meaning, there is no graph to be told, and the labelling stays as it is.

    Args:
        environments: Who was under which intervention.
        knowledge: What is known of the graph.
        clusters: The clusters of the samples.
        base: What labels said; None: a mask has numbered the cells.

    Raises:
        ValueError: More than five nodes, or too many maps of targets.
    """
    named = base or Labelling(np.arange(clusters.responsibilities.shape[1]))
    if base is not None and set(base.named_nodes) != set(environments.nodes) and not environments.visible:
        return named
    counts = environment_counts(clusters.responsibilities, environments.codes, len(environments.names))
    tables = as_tables(counts, named.permutation[None], environments.outcomes)[0]
    maps = target_maps(environments.known, len(environments.nodes))
    likelihood = log_likelihood_ratio(clusters.responsibilities)[:, np.argsort(named.permutation)]
    hidden = HiddenSamples(likelihood, environments.codes, environments.outcomes)
    found = environment_posterior(tables, maps, knowledge, "soft", hidden=hidden)
    joint, *of_environments = fit_environments(hidden, found.graph.astype(int), found.targets, "soft")[1]
    return replace(
        named,
        details={**named.details, **_details(environments, found, counts)},
        joint=joint,
        environment_joint=dict(zip(environments.names[1:], of_environments, strict=True)),
    )


def _details(environments: Environments, found: EnvironmentGraphs, counts: np.ndarray) -> dict[str, Any]:
    nodes, posterior = list(environments.nodes), found.posterior
    return {
        "kind": "soft",
        "targets": {name: nodes[target] for name, target in zip(environments.names[1:], found.targets, strict=True)},
        "target_probability": {
            name: dict(zip(nodes, row.tolist(), strict=True))
            for name, row in zip(environments.names[1:], found.target_probability, strict=True)
        },
        "known_targets": sorted(environments.targets),
        "samples": dict(zip(environments.names, counts.sum(1).round().astype(int).tolist(), strict=True)),
        "graph": found.graph.astype(int).tolist(),
        "class": posterior.best.tolist(),
        "classes": [{"cpdag": graph.tolist(), "probability": weight} for graph, weight in posterior.classes],
        "edge_probability": posterior.edge_probability.tolist(),
        "compelled_probability": posterior.compelled_probability.tolist(),
        "graph_gap": found.gap,
        "n_searched": {"graphs": posterior.diagnostics["n_graphs"], "targets": posterior.diagnostics["n_targets"]},
    }
