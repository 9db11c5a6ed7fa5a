"""`python -m inference.query`: what would happen if nodes of a finished run were set.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch

from inference.command_line.errors import run_command
from inference.command_line.query_arguments import Arguments, parse
from inference.queries.answer import QueryAnswer
from inference.queries.file import write_draws
from inference.queries.query import answer_query
from inference.queries.question import check_named, pairs_of
from inference.queries.source import source_of_run
from inference.queries.text import answer_text
from inference.results.figures.query import write_query_figures
from inference.results.files import write_json

__all__ = ["main"]


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
