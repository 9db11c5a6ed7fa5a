"""The posterior over graphs of a run folder, as plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from inference.command_line.graph_arguments import Arguments
from inference.graphs.knowledge import GraphKnowledge, graph_knowledge
from inference.graphs.mixture_posterior import NodeSamples, mixture_posterior
from inference.queries.question import check_named
from inference.results.graph_posterior import declared_knowledge, plain_posterior
from inference.results.graph_sensitivity import sensitivity
from inference.results.meaning import is_named
from inference.results.node_samples import check_groups, node_samples_of_file
from inference.results.observed_factors import with_factors
from inference.results.run_folder import RunFolder
from inference.training.fitted_run import check_finished

__all__ = ["posterior_of_run"]


def posterior_of_run(arguments: Arguments) -> dict[str, Any]:
    """What `inference.graph RUN` finds (keys: docs/graph_posterior.md).

    Args:
        arguments: The command line.

    Raises:
        ValueError: No finished run, nodes without a meaning, or nothing to score.
    """
    assert arguments.run is not None
    folder = RunFolder(arguments.run)
    folder.read_config()
    check_finished(folder)
    summary, file = folder.read_summary(), folder.read_posterior()
    _check_named(summary, arguments.as_labelled)
    check_groups(file, summary)
    samples = with_factors(_checked(folder, node_samples_of_file(file)), file, arguments.factors)
    knowledge = _knowledge(arguments, json.loads(file.attrs["facts"]), samples.nodes)
    posterior = mixture_posterior(samples, arguments.score, knowledge, arguments.edge_prior)
    compared = sensitivity(samples, knowledge, posterior, arguments.edge_prior)
    return {
        **plain_posterior(posterior, knowledge, samples.outcomes, compared),
        "edge_prior": arguments.edge_prior,
        "is_named": is_named(summary),
        "equivalent_labellings": summary.get("graph", {}).get("equivalent_labellings"),
    }


def _check_named(summary: Mapping[str, Any], as_labelled: bool) -> None:
    if as_labelled:
        return
    try:
        check_named(summary, "run")
    except ValueError as error:
        raise ValueError(f"{error}; or --as_labelled takes them as they are, one labelling of many") from error


def _checked(folder: RunFolder, samples: NodeSamples | None) -> NodeSamples:
    if samples is None:
        raise ValueError(f"{folder.path}: expected training samples without intervention, got none; fit with some")
    return samples


def _knowledge(arguments: Arguments, attributes: Mapping[str, Any], nodes: tuple[str, ...]) -> GraphKnowledge:
    if arguments.knowledge is None:
        return declared_knowledge(attributes, nodes)
    return graph_knowledge(arguments.knowledge, nodes)
