"""`python -m inference.query`: what would happen if nodes of a finished run were set.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jsonargparse import ArgumentParser

from causalpima.inference.analyses.answer import QueryAnswer, answer_text, write_draws
from causalpima.inference.analyses.query import QueryOptions, answer_query
from causalpima.inference.analyses.scenarios import check_named, pairs_of, source_of_run
from causalpima.inference.command_line.files import check_netcdf_name
from causalpima.inference.command_line.parsing import (
    add_code_flag,
    add_computing_flags,
    command_parser,
    parse_in_plain_words,
    run_command,
)
from causalpima.inference.command_line.words import count, optional_path, whole_number
from causalpima.inference.reporting.figures.query import write_query_figures
from causalpima.inference.store.files import write_json

__all__ = [
    "Arguments",
    "main",
    "parse",
]


# Arguments of `python -m inference.query`, checked.


_USAGE = "python -m inference.query RUN --do NODE=OUTCOME [--do ...] [--given NODE=OUTCOME ...] [--FLAG VALUE ...]"
_NO_RUN = f"run: expected the folder of a run, got none; {_USAGE}"
_DESCRIPTION = """\
Say what would happen if nodes were set, in nodes and in every modality, beside what is observed. Needs a run all of
whose nodes have a meaning. Where its graph is not identified, the answer is an interval over the graphs.
"""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        run: Folder of the run.
        do: `NODE=OUTCOME` of the nodes that are set.
        given: The same of the nodes that are conditioned on.
        options: How it is answered.
        json: File for the answer, or None.
        figures: Folder for figures, or None.
        output: File for the draws, or None.
        device: Where to compute.
        threads: Threads to compute with.
    """

    run: Path
    do: tuple[str, ...]
    given: tuple[str, ...]
    options: QueryOptions
    json: Path | None
    figures: Path | None
    output: Path | None
    device: str
    threads: int


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    found = parse_in_plain_words(_build_parser(), argv, lambda _: _NO_RUN)
    json, figures, output = map(optional_path, (found.json, found.figures, found.output))
    if output is not None:
        check_netcdf_name(output)
    options = QueryOptions(found.draws, found.seed, output is not None, found.counterfactual, found.data)
    do, given = tuple(found.do or ()), tuple(found.given or ())
    return Arguments(Path(found.run), do, given, options, json, figures, output, found.device, found.threads)


def _build_parser() -> ArgumentParser:
    parser = command_parser("query", _USAGE, _DESCRIPTION)
    add_code_flag(parser)
    add, default = parser.add_argument, QueryOptions()
    add("run", type=str, metavar="RUN", help="Folder of a finished run.")
    add("--do", action="append", type=str, metavar="NODE=OUTCOME", help="Set a node; may be given several times.")
    add(
        "--given",
        action="append",
        type=str,
        metavar="NODE=OUTCOME",
        help="Condition on a node, after what is set; may be given several times.",
    )
    add(
        "--counterfactual",
        type=str,
        metavar="SAMPLE",
        help="Bounds of what would have become of one sample of the run: its name or number.",
    )
    add("--data", type=str, metavar="NEW.nc", help="File of new samples that --counterfactual is one of.")
    add("--draws", type=count, default=default.draws, metavar="N", help="Draws (default 1000).")
    add("--seed", type=whole_number, default=default.seed, metavar="N", help="Seed of the draws (default 0).")
    add("--json", type=str, metavar="FILE", help="Write the answer to this file, too.")
    add("--figures", type=str, metavar="FOLDER", help="Write a figure per modality into this folder.")
    add("--output", type=str, metavar="FILE.nc", help="Write draws of N, Z and every modality to this file.")
    add_computing_flags(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("query", _command, argv, reads_run=True)


def _command(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    torch.set_num_threads(arguments.threads)
    answer = _answer(arguments)
    if arguments.figures is not None:
        write_query_figures(answer, arguments.figures)
    if arguments.output is not None:
        write_draws(answer, arguments.output)
    if arguments.json is not None:
        write_json(arguments.json, answer.to_plain())
    print(answer_text(answer))
    return 0


def _answer(arguments: Arguments) -> QueryAnswer:
    source = source_of_run(arguments.run, arguments.device)
    check_named(source.summary, "do" if arguments.do else "given")
    do, given = (pairs_of(flag, getattr(arguments, flag), source.outcomes) for flag in ("do", "given"))
    return answer_query(source, do, given, arguments.options)


if __name__ == "__main__":
    sys.exit(main())
