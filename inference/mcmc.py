"""`python -m inference.mcmc`: the posterior over the graph of a finished run by Markov chains, and its diagnostics.

Exit status: 0 done (whatever the verdicts), 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from jsonargparse import ArgumentParser
from tqdm.auto import tqdm

from causalpima.inference.command_line.parsing import command_parser, parse_in_plain_words, run_command
from causalpima.inference.command_line.run_data import keep_results
from causalpima.inference.command_line.words import FlagError, count, optional_path, whole_number
from causalpima.inference.findings.chains import (
    LABELLING_NOTE,
    PRIOR_NOTES,
    ChainFindings,
    chain_report,
    write_chain_figures,
)
from causalpima.inference.findings.run_graph import RunGraph, exact_edges, prior_edges, run_graph
from causalpima.inference.graphs.chains import Chains, Settings, run_chains
from causalpima.inference.reporting.chain_file import write_chains
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.fitted_run import check_finished

__all__ = [
    "Arguments",
    "main",
    "parse",
]


# Arguments of `python -m inference.mcmc`, checked.


_USAGE = "python -m inference.mcmc RUN [--program hodge|dags] [--chains 4 --warmup 500 --draws 500] [--json FILE]"
_NO_RUN = f"run: expected the folder of a run, got none; {_USAGE}"
_DESCRIPTION = """\
Sample the posterior over the graph of a finished run by the No-U-Turn sampler, given its embedding, with N summed out.
hodge: node scores, edge weights and tables, as in training. dags: all graphs of up to 4 nodes, equally likely
beforehand, with Dirichlet tables. Says whether the chains can be believed; writes mcmc.nc, mcmc.json and figures.
"""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        run: Folder of the run.
        program: `hodge` or `dags`.
        settings: Length of a chain.
        chains: Number of chains.
        seed: Seed of all of them.
        jobs: Processes side by side.
        equivalent_sample_size: Of the Dirichlet tables of `dags`.
        json: Another file for the numbers, or None.
    """

    run: Path
    program: Literal["hodge", "dags"]
    settings: Settings
    chains: int
    seed: int
    jobs: int
    equivalent_sample_size: float
    json: Path | None


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    found = parse_in_plain_words(_build_parser(), argv, lambda _: _NO_RUN)
    json = optional_path(found.json)
    settings = Settings(found.warmup, found.draws, full_mass=found.program == "hodge")
    return Arguments(Path(found.run), found.program, settings, found.chains, found.seed, found.jobs, found.ess, json)


def _build_parser() -> ArgumentParser:
    parser = command_parser("mcmc", _USAGE, _DESCRIPTION)
    add = parser.add_argument
    add("run", type=str, metavar="RUN", help="Folder of a finished run.")
    add("--program", choices=["hodge", "dags"], default="hodge", help="What is sampled (default hodge).")
    add("--chains", type=count, default=4, metavar="N", help="Number of chains (default 4).")
    add("--warmup", type=_steps, default=500, metavar="N", help="Steps that adapt and are dropped (default 500).")
    add("--draws", type=_steps, default=500, metavar="N", help="Draws of each chain (default 500).")
    add("--seed", type=whole_number, default=0, metavar="N", help="Seed (default 0).")
    add("--jobs", type=count, default=1, metavar="N", help="Chains side by side, in processes (default 1).")
    add("--ess", type=_positive, default=1.0, metavar="S", help="Equivalent sample size of dags (default 1).")
    add("--json", type=str, metavar="FILE", help="Write the numbers to this file, too.")
    return parser


def _steps(value: Any) -> int:
    return whole_number(value, least=4)


def _positive(value: Any) -> float:
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise FlagError(f"expected a positive number, got {value}")
    return number


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("mcmc", _command, argv, reads_run=True)


def _command(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    torch.set_num_threads(1)
    folder = RunFolder(arguments.run)
    folder.read_config()
    check_finished(folder)
    graph = run_graph(folder.read_posterior(), folder.read_summary())
    chains = _sample(arguments, graph)
    findings = ChainFindings(graph.samples.nodes, graph.cells, chains, arguments.program == "hodge")
    _report(arguments, folder, graph, findings)
    return 0


def _sample(arguments: Arguments, graph: RunGraph) -> Chains:
    program = graph.program(arguments.program, arguments.equivalent_sample_size)
    settings = arguments.settings
    total = arguments.chains * (settings.warmup + settings.draws)
    with tqdm(total=total, desc="mcmc", unit="step", disable=None) as bar:
        return run_chains(program, settings, arguments.chains, arguments.seed, arguments.jobs, bar.update)


def _report(arguments: Arguments, folder: RunFolder, graph: RunGraph, findings: ChainFindings) -> None:
    """Files, then the table."""
    exact = exact_edges(graph, arguments.equivalent_sample_size)
    prior = prior_edges(graph, arguments.program, arguments.seed)
    facts = {
        "program": arguments.program,
        "prior": graph.prior_of(arguments.program, arguments.equivalent_sample_size),
        "seed": arguments.seed,
        "warmup": arguments.settings.warmup,
        "is_named": graph.is_named,
        "notes": [PRIOR_NOTES[arguments.program], *([] if graph.is_named else [LABELLING_NOTE])],
    }
    beside = {
        "exact_edge_probability": None if exact is None else exact.tolist(),
        "prior_edge_probability": prior.tolist(),
    }
    routes = {f"chains ({arguments.program})": findings.edge_probability, "prior of the chains": prior}
    routes |= {} if exact is None else {"exact (BDeu)": exact}
    results = {**facts, **findings.to_plain(), **beside}
    keep_results(
        folder,
        "mcmc",
        results,
        lambda place: write_chain_figures(findings, routes, place),
        arguments.json,
        write_files=lambda place: write_chains(findings, facts, place / "mcmc.nc"),
    )
    print(chain_report(findings, arguments.program, exact, prior, graph.is_named))


if __name__ == "__main__":
    sys.exit(main())
