"""`python -m inference.export`: the graph of a finished run, for other programs.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY, dataclass

from causalpima.inference.command_line.command import Command, File, Run
from causalpima.inference.graphs.export import check_ending, write_graph
from causalpima.inference.graphs.formats import ORIENTATION
from causalpima.inference.reporting.exported_graph import graph_of_run

__all__ = ["COMMAND", "Options", "main", "parse", "run"]


@dataclass(frozen=True)
class Options:
    """Write the graph of a finished run for other programs.

    The ending of the file says the format: .edges.csv, .csv, .graphml, .dot, .gv, .bif or .json. Edges run from row to
    column, from cause to effect; what is not directed is written as a line.

    Attributes:
        run: Folder of a finished run.
        output: File to write; an older one is replaced.
        dag: One directed graph of the equivalence class in place of the class.
        as_labelled: Nodes without a meaning, too, as they happen to be labelled.
    """

    run: Run
    _: KW_ONLY
    output: File
    dag: bool = False
    as_labelled: bool = False

    def __post_init__(self) -> None:
        check_ending(self.output)


def run(options: Options) -> int:
    """Write the graph and say where it is; returns the exit status."""
    graph = graph_of_run(options.run, options.as_labelled)
    graph = graph.as_dag() if options.dag else graph
    write_graph(graph, options.output)
    print(f"Graph     {options.output}\nEdges     {ORIENTATION}\nNote      {graph.note}")
    return 0


COMMAND = Command("export", Options, run)
main, parse = COMMAND.main, COMMAND.parse

if __name__ == "__main__":
    sys.exit(main())
