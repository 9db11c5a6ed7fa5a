"""`python -m inference.graph`: the posterior over graphs between the nodes of a finished run or a table.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import torch

from causalpima.inference.analyses.scenarios import check_named
from causalpima.inference.command_line.command import Command, Count, File, Folder, Group, Run
from causalpima.inference.command_line.flags import add_knowledge_arguments, knowledge_of
from causalpima.inference.command_line.words import comma_names, positive_number
from causalpima.inference.data.tables import CategoryTable, read_category_table
from causalpima.inference.findings.graph import graph_table
from causalpima.inference.findings.meaning import is_named
from causalpima.inference.findings.posterior import (
    SENSITIVITY_SCORES,
    check_groups,
    compared,
    declared_knowledge,
    node_samples_of_file,
    plain_posterior,
    sensitivity,
    with_factors,
)
from causalpima.inference.graphs.dags import GraphKnowledge, KnowledgeConfig, graph_knowledge
from causalpima.inference.graphs.enumeration import Evidence
from causalpima.inference.graphs.posterior import MOST_SUMMED, NodeSamples, mixture_posterior, posterior_of_scores
from causalpima.inference.graphs.scores import GraphPosterior, Score, family_scores
from causalpima.inference.reporting.figures.graph import write_posterior_figures
from causalpima.inference.store.files import write_json
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.fitted_run import check_finished

__all__ = ["COMMAND", "Options", "main", "parse", "posterior_of_run", "posterior_of_table", "run"]


_MOST_LOG_ODDS = 1e6  # scores keep ten digits beside it


def log_odds(value: Any) -> float:
    """A number whose size leaves the scores their digits."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not abs(number) <= _MOST_LOG_ODDS:
        raise ValueError(f"expected a number from -{_MOST_LOG_ODDS:g} to {_MOST_LOG_ODDS:g}, got {value}")
    return number


@dataclass(frozen=True)
class Options:
    """Posterior over graphs between the nodes of a finished run, or between the columns of a table of categories.

    Probability of every edge, of classes of graphs, and how much these depend on the score. All nodes of the run have a
    meaning.

    Attributes:
        run: Folder of a finished run.
        data: Table of categories in its place: a column per node, names first.
        score: Score of a graph.
        json: Write the posterior to this file, too.
        figures: Write a figure of the edge probabilities into this folder.
        as_labelled: Go on where clusters are unnamed, with one of the labellings that fit equally well.
        columns: Columns of the table to use; default all.
        factors: Known factors of the run, as observed nodes beside its own.
        edge_prior: Log-odds of every edge beforehand: 0, all possible graphs alike; below 0, fewer edges.
        equivalent_sample_size: Of BDeu's prior on tables, in samples; default 1.
        threads: Threads to compute with.
        knowledge: What is known of the graph; none: what the run declared.
    """

    run: Run | None = None
    _: KW_ONLY
    data: Annotated[Path, "TABLE.csv"] | None = None
    score: Literal["bic", "bdeu"] = "bic"
    json: File | None = None
    figures: Folder | None = None
    as_labelled: bool = False
    columns: Annotated[tuple[str, ...], comma_names, "A,B"] = ()
    factors: Annotated[tuple[str, ...], comma_names, "A,B"] = ()
    edge_prior: Annotated[float, log_odds, "LOG_ODDS"] = 0.0
    equivalent_sample_size: Annotated[float, positive_number, "A"] | None = None
    threads: Count = 1
    knowledge: Annotated[KnowledgeConfig, Group(add_knowledge_arguments, knowledge_of)] = field(
        default_factory=KnowledgeConfig
    )

    def __post_init__(self) -> None:
        if self.run is None and self.data is None:
            raise ValueError("run: expected the folder of a run, or a table with --data, got none; name one of them")
        if self.run is not None and self.data is not None:
            raise ValueError("data: expected a table or the folder of a run, got both; leave one of them out")
        if self.data is not None and self.as_labelled:
            raise ValueError("as_labelled: expected it with a run, got a table, whose columns have names; leave it out")
        if self.data is not None and self.factors:
            raise ValueError("factors: expected them with a run, got a table, whose columns are nodes; leave them out")
        if self.run is not None and self.columns:
            raise ValueError("columns: expected them with a table, got a run; its nodes are all used, leave them out")
        self.scoring()

    def scoring(self) -> Score:
        """How graphs are scored."""
        return Score.of(self.score, self.equivalent_sample_size)


def run(options: Options) -> int:
    """Find the posterior, write and print it; returns the exit status."""
    torch.set_num_threads(options.threads)
    found = posterior_of_run(options) if options.data is None else posterior_of_table(options.data, options)
    if options.figures is not None:
        write_posterior_figures(found, options.figures)
    if options.json is not None:
        write_json(options.json, found)
    print(graph_table(found))
    return 0


# The posterior over graphs of a run folder, as plain values.


def posterior_of_run(options: Options) -> dict[str, Any]:
    """What `inference.graph RUN` finds (keys: docs/graph_posterior.md).

    Args:
        options: The command line.

    Raises:
        ValueError: No finished run, nodes without a meaning, or nothing to score.
    """
    assert options.run is not None
    folder = RunFolder(options.run)
    folder.read_config()
    check_finished(folder)
    summary, file = folder.read_summary(), folder.read_posterior()
    _check_named(summary, options.as_labelled)
    check_groups(file, summary)
    samples = with_factors(_checked(folder, node_samples_of_file(file)), file, options.factors)
    knowledge = _knowledge(options, json.loads(file.attrs["facts"]), samples.nodes)
    posterior = mixture_posterior(samples, options.scoring(), knowledge, options.edge_prior)
    compared = sensitivity(samples, knowledge, posterior, options.edge_prior)
    return {
        **plain_posterior(posterior, knowledge, samples.outcomes, compared),
        "edge_prior": options.edge_prior,
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


def _knowledge(options: Options, attributes: Mapping[str, Any], nodes: tuple[str, ...]) -> GraphKnowledge:
    if options.knowledge == KnowledgeConfig():
        return declared_knowledge(attributes, nodes)
    return graph_knowledge(options.knowledge, nodes)


# The posterior over graphs of a table of categories, as plain values.


_MANY = 14


def posterior_of_table(path: Path, options: Options) -> dict[str, Any]:
    """What `inference.graph --data TABLE` finds (keys: docs/graph_tables.md).

    Args:
        path: The table.
        options: The command line.

    Raises:
        ValueError: No table of categories, or knowledge that contradicts itself or names other nodes.
    """
    table = read_category_table(path, options.columns)
    for note in table.notes:
        print(f"note: {path}: {note}", file=sys.stderr)
    knowledge = graph_knowledge(options.knowledge, table.nodes)
    if len(table.nodes) > _MANY:
        print(f"note: {len(table.nodes)} columns: this takes minutes", file=sys.stderr)
    posterior = _posterior(table, options.scoring(), knowledge, options.edge_prior)
    return {
        **plain_posterior(
            posterior, knowledge, table.outcomes, _sensitivity(table, knowledge, posterior, options.edge_prior)
        ),
        "edge_prior": options.edge_prior,
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


COMMAND = Command(
    "graph", Options, run, usage="(RUN | --data TABLE.csv) [--score {bic,bdeu}] [--json FILE] [--FLAG VALUE ...]"
)
main, parse = COMMAND.main, COMMAND.parse

if __name__ == "__main__":
    sys.exit(main())
