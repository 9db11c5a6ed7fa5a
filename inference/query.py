"""`python -m inference.query`: what would happen if nodes of a finished run were set.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

import torch

from causalpima.inference.analyses.answer import answer_text, write_draws
from causalpima.inference.analyses.query import QueryOptions, answer_query
from causalpima.inference.analyses.scenarios import check_named, pairs_of, source_of_run
from causalpima.inference.command_line.command import Command, Computing, Count, File, Folder, NetcdfFile, Run, Seed
from causalpima.inference.reporting.figures.query import write_query_figures
from causalpima.inference.store.files import write_json

__all__ = ["COMMAND", "Options", "main", "parse", "run"]

Outcomes = Annotated[tuple[str, ...], "NODE=OUTCOME", {"action": "append"}]


@dataclass(frozen=True)
class Options(Computing):
    """Say what would happen if nodes were set.

    In nodes and in every modality, beside what is observed. Needs a run all of whose nodes have a meaning. Where its
    graph is not identified, the answer is an interval over the graphs.

    Attributes:
        run: Folder of a finished run.
        do: Set a node; may be given several times.
        given: Condition on a node, after what is set; may be given several times.
        counterfactual: Bounds of what would have become of one sample of the run: its name or number.
        data: File of new samples that --counterfactual is one of.
        draws: Draws.
        seed: Seed of the draws.
        json: Write the answer to this file, too.
        figures: Write a figure per modality into this folder.
        output: Write draws of N, Z and every modality to this file.
    """

    run: Run
    _: KW_ONLY
    do: Outcomes = ()
    given: Outcomes = ()
    counterfactual: Annotated[str, "SAMPLE"] | None = None
    data: Annotated[str, "NEW.nc"] | None = None
    draws: Count = QueryOptions.draws
    seed: Seed = QueryOptions.seed
    json: File | None = None
    figures: Folder | None = None
    output: NetcdfFile | None = None

    @property
    def query(self) -> QueryOptions:
        """How it is answered."""
        return QueryOptions(self.draws, self.seed, self.output is not None, self.counterfactual, self.data)


def run(options: Options) -> int:
    """Answer, write and print the answer; returns the exit status."""
    torch.set_num_threads(options.threads)
    source = source_of_run(options.run, options.device)
    check_named(source.summary, "do" if options.do else "given")
    do, given = (pairs_of(flag, getattr(options, flag), source.outcomes) for flag in ("do", "given"))
    answer = answer_query(source, do, given, options.query)
    if options.figures is not None:
        write_query_figures(answer, options.figures)
    if options.output is not None:
        write_draws(answer, options.output)
    if options.json is not None:
        write_json(options.json, answer.to_plain())
    print(answer_text(answer))
    return 0


COMMAND = Command(
    "query",
    Options,
    run,
    usage="RUN --do NODE=OUTCOME [--given NODE=OUTCOME] [--FLAG VALUE ...]",
    runs_code=True,
)
main, parse = COMMAND.main, COMMAND.parse

if __name__ == "__main__":
    sys.exit(main())
