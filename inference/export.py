"""`python -m inference.export`: the graph of a finished run, for other programs.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jsonargparse import ArgumentParser

from causalpima.inference.command_line.parsing import command_parser, parse_in_plain_words, run_command
from causalpima.inference.graphs.export import ENDINGS, check_ending, write_graph
from causalpima.inference.graphs.formats import ORIENTATION
from causalpima.inference.reporting.exported_graph import graph_of_run

__all__ = [
    "Arguments",
    "main",
    "parse",
]


# Arguments of `python -m inference.export`, checked.


_USAGE = "python -m inference.export RUN --output FILE [--dag] [--as_labelled]"
_DESCRIPTION = f"""\
Write the graph of a finished run for other programs, in the format that the ending of FILE says: {", ".join(ENDINGS)}.
Edges run from row to column, from cause to effect; what is not directed is written as a line.
"""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        run: Folder of the run.
        output: File to write.
        dag: One graph of the class instead of the class.
        as_labelled: Export nodes without a meaning, too.
    """

    run: Path
    output: Path
    dag: bool
    as_labelled: bool


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    found = parse_in_plain_words(_build_parser(), argv, _missing)
    output = Path(found.output)
    check_ending(output)
    return Arguments(Path(found.run), output, found.dag, found.as_labelled)


def _build_parser() -> ArgumentParser:
    parser = command_parser("export", _USAGE, _DESCRIPTION)
    add = parser.add_argument
    add("run", type=str, metavar="RUN", help="Folder of a finished run.")
    add("--output", type=str, required=True, metavar="FILE", help="File to write; an older one is replaced.")
    add("--dag", action="store_true", help="One directed graph of the equivalence class instead of the class.")
    add("--as_labelled", action="store_true", help="Nodes without a meaning, too, as they happen to be labelled.")
    return parser


def _missing(message: str) -> str:
    missing = [flag for flag in ("run", "output") if re.search(rf"\b{flag}\b", message)]
    return f"{(missing or ['run'])[0]}: expected it, got none; {_USAGE}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("export", _command, argv, reads_run=True)


def _command(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    graph = graph_of_run(arguments.run, arguments.as_labelled)
    graph = graph.as_dag() if arguments.dag else graph
    write_graph(graph, arguments.output)
    print(f"Graph     {arguments.output}\nEdges     {ORIENTATION}\nNote      {graph.note}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
