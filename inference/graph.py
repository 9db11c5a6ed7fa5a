"""`python -m inference.graph`: the posterior over graphs between the nodes of a finished run or a table.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jsonargparse import ArgumentParser

from causalpima.inference.analyses.scenarios import check_named
from causalpima.inference.command_line.flags import add_knowledge_arguments, knowledge_of
from causalpima.inference.command_line.parsing import command_parser, parse_in_plain_words, run_command
from causalpima.inference.command_line.words import FlagError, count, optional_path
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

__all__ = [
    "Arguments",
    "main",
    "parse",
    "posterior_of_run",
    "posterior_of_table",
]


# Arguments of `python -m inference.graph`, checked.


_USAGE = "python -m inference.graph (RUN | --data TABLE.csv) [--score {bic,bdeu}] [--json FILE] [--FLAG VALUE ...]"
_NO_RUN = f"run: expected the folder of a run, or a table with --data, got none; {_USAGE}"
_BOTH = f"data: expected a table or the folder of a run, got both; {_USAGE}"
_MOST_LOG_ODDS = 1e6  # scores keep ten digits beside it
_DESCRIPTION = """\
Posterior over graphs between the nodes of a finished run, all of which have a meaning, or between the columns of a
table of categories: probability of every edge, of classes of graphs, and how much these depend on the score.
"""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        run: Folder of the run; None: a table is read instead.
        data: Table of categories; None: there is a run.
        score: How graphs are scored.
        edge_prior: Log-odds of every edge beforehand; 0: all possible graphs alike.
        knowledge: What is known of the graph; None: what the run declared.
        columns: Columns of the table to use; none: all.
        factors: Known factors of the run that stand beside its nodes.
        as_labelled: Whether nodes without a meaning are taken as they are labelled.
        json: File for the posterior, or None.
        figures: Folder for figures, or None.
        threads: Threads to compute with.
    """

    run: Path | None
    data: Path | None
    score: Score
    edge_prior: float
    knowledge: KnowledgeConfig | None
    columns: tuple[str, ...]
    factors: tuple[str, ...]
    as_labelled: bool
    json: Path | None
    figures: Path | None
    threads: int


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    found = parse_in_plain_words(_build_parser(), argv, lambda _: _NO_RUN)
    run, data, json, figures = map(optional_path, (found.run, found.data, found.json, found.figures))
    _check_source(run, data, found.as_labelled, found.factors)
    if run is not None and found.columns:
        raise ValueError("columns: expected them with a table, got a run; its nodes are all used, leave them out")
    known = knowledge_of(found.knowledge)
    return Arguments(
        run,
        data,
        Score.of(found.score, found.equivalent_sample_size),
        found.edge_prior,
        None if known == KnowledgeConfig() else known,
        found.columns or (),
        found.factors or (),
        found.as_labelled,
        json,
        figures,
        found.threads,
    )


def _check_source(run: Path | None, data: Path | None, as_labelled: bool, factors: Sequence[str] | None) -> None:
    if (run is None) == (data is None):
        raise ValueError(_NO_RUN if run is None else _BOTH)
    if data is not None and as_labelled:
        raise ValueError("as_labelled: expected it with a run, got a table, whose columns have names; leave it out")
    if data is not None and factors:
        raise ValueError("factors: expected them with a run, got a table, whose columns are nodes; leave them out")


def _build_parser() -> ArgumentParser:
    parser = command_parser("graph", _USAGE, _DESCRIPTION)
    add = parser.add_argument
    add("run", type=str, nargs="?", metavar="RUN", help="Folder of a finished run.")
    add("--data", type=str, metavar="TABLE.csv", help="Table of categories instead: a column per node, names first.")
    add("--columns", type=_names, metavar="A,B", help="Columns of the table to use (default all).")
    add("--score", type=str, choices=("bic", "bdeu"), default="bic", help="Score of a graph (default bic).")
    add(
        "--equivalent_sample_size",
        type=_size,
        metavar="A",
        help="Of BDeu's prior on tables, in samples (default 1).",
    )
    add(
        "--edge_prior",
        type=_log_odds,
        default=0.0,
        metavar="LOG_ODDS",
        help="Log-odds of every edge beforehand: 0, all possible graphs alike (default); below 0, fewer edges.",
    )
    add_knowledge_arguments(parser)
    add("--factors", type=_names, metavar="A,B", help="Known factors of the run, as observed nodes beside its own.")
    add(
        "--as_labelled",
        action="store_true",
        help="Go on where clusters are unnamed, with one of the labellings that fit equally well.",
    )
    add("--json", type=str, metavar="FILE", help="Write the posterior to this file, too.")
    add("--figures", type=str, metavar="FOLDER", help="Write a figure of the edge probabilities into this folder.")
    add("--threads", type=count, default=1, metavar="N", help="Threads to compute with (default 1).")
    return parser


def _names(value: Any) -> tuple[str, ...]:
    found = tuple(str(value).split(",")) if isinstance(value, str) else tuple(value)
    if not all(found) or len(set(found)) < len(found):
        raise FlagError(f"expected names with commas between them, each once, got {value}")
    return found


def _size(value: Any) -> float:
    number = _number(value)
    if not (math.isfinite(number) and number > 0):
        raise FlagError(f"expected a number above 0, got {value}")
    return number


def _log_odds(value: Any) -> float:
    number = _number(value)
    if not abs(number) <= _MOST_LOG_ODDS:
        raise FlagError(f"expected a number from -{_MOST_LOG_ODDS:g} to {_MOST_LOG_ODDS:g}, got {value}")
    return number


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


# The posterior over graphs of a run folder, as plain values.


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


# The posterior over graphs of a table of categories, as plain values.


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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("graph", _command, argv, reads_run=True)


def _command(argv: Sequence[str]) -> int:
    arguments: Arguments = parse(argv)
    torch.set_num_threads(arguments.threads)
    found = _found(arguments)
    if arguments.figures is not None:
        write_posterior_figures(found, arguments.figures)
    if arguments.json is not None:
        write_json(arguments.json, found)
    print(graph_table(found))
    return 0


def _found(arguments: Arguments) -> dict[str, Any]:
    return posterior_of_run(arguments) if arguments.data is None else posterior_of_table(arguments.data, arguments)


if __name__ == "__main__":
    sys.exit(main())
