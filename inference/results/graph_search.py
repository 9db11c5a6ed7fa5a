"""The class and the posterior over graphs of a fit whose nodes have a meaning: entries of a summary's `graph`.

Both rest on one pass over all classes of graphs where there are few; a run takes about a second for them at most, and
what would take longer is left to `python -m inference.graph RUN`.
"""

from __future__ import annotations

from typing import Any

from inference.graphs.exact_search import score_classes
from inference.graphs.knowledge import GraphKnowledge
from inference.graphs.mixture_posterior import MOST_SCORED_NODES, NodeSamples, classes_posterior, mixture_posterior
from inference.graphs.posterior import Score
from inference.graphs.search_cost import counts_are_quick, is_quick
from inference.results.arrays import FitArrays
from inference.results.equivalence_class import described_class
from inference.results.graph_posterior import declared_knowledge, plain_posterior
from inference.results.graph_sensitivity import SENSITIVITY_SCORES, sensitivity
from inference.results.node_samples import node_samples

__all__ = ["graph_search"]


def graph_search(fit: FitArrays) -> dict[str, Any]:
    """`equivalence_class` and `posterior`, as far as they are quick; nothing for one node.

    Args:
        fit: A fit whose nodes are all identified: under other names of the clusters these are others.
    """
    samples = node_samples(fit)
    if samples is None or len(samples.nodes) < 2:
        return {}
    knowledge = declared_knowledge(fit.attributes, samples.nodes)
    if len(samples.nodes) > MOST_SCORED_NODES:
        return _by_counts(samples, knowledge)
    return _by_classes(samples, knowledge) if is_quick(samples.log_likelihood, samples.outcomes) else {}


def _by_classes(samples: NodeSamples, knowledge: GraphKnowledge) -> dict[str, Any]:
    found = score_classes(samples.log_likelihood, samples.outcomes, weights=samples.weights, knowledge=knowledge)
    posterior = classes_posterior(found, samples, knowledge)
    others = is_quick(samples.log_likelihood, samples.outcomes, len(SENSITIVITY_SCORES))
    compared = sensitivity(samples, knowledge, posterior) if others else None
    return {
        "equivalence_class": described_class(found, samples),
        "posterior": plain_posterior(posterior, knowledge, samples.outcomes, compared),
    }


def _by_counts(samples: NodeSamples, knowledge: GraphKnowledge) -> dict[str, Any]:
    if not counts_are_quick(samples.log_likelihood, samples.outcomes):
        return {}
    return {"posterior": plain_posterior(mixture_posterior(samples, Score(), knowledge), knowledge, samples.outcomes)}
