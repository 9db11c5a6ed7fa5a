"""`python -m inference.graph`: the posterior over graphs between the nodes of a finished run or a table.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch

from inference.command_line.errors import run_command
from inference.command_line.graph_arguments import Arguments, parse
from inference.command_line.graph_data import posterior_of_table
from inference.command_line.graph_run import posterior_of_run
from inference.results.figures.edge_probabilities import write_posterior_figures
from inference.results.files import write_json
from inference.results.graph_table import graph_table

__all__ = ["main"]


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
