"""Arguments of `python -m inference.graph`, checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser

from inference.command_line.flag_types import FlagError, count, optional_path
from inference.command_line.knowledge_arguments import add_knowledge_arguments, knowledge_of
from inference.command_line.parsing import command_parser, parse_in_plain_words
from inference.graphs.posterior import Score
from inference.training.side_information_config import KnowledgeConfig

__all__ = ["Arguments", "parse"]

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
