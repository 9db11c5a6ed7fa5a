"""`python -m inference.export`: the graph of a finished run, for other programs.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from inference.command_line.errors import run_command
from inference.command_line.export_arguments import parse
from inference.graphs.export import ORIENTATION, write_graph
from inference.results.exported_graph import graph_of_run

__all__ = ["main"]


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
