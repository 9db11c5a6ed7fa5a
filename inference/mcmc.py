"""`python -m inference.mcmc`: the posterior over the graph of a finished run by Markov chains, and its diagnostics.

Exit status: 0 done (whatever the verdicts), 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Annotated, Literal

import torch
from tqdm.auto import tqdm

from causalpima.inference.command_line.command import Command, Count, File, Run, Seed
from causalpima.inference.command_line.run_data import keep_results
from causalpima.inference.command_line.words import positive_number, whole_number
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

__all__ = ["COMMAND", "Options", "main", "parse", "run"]

Steps = Annotated[int, partial(whole_number, least=4), "N"]


@dataclass(frozen=True)
class Options:
    """Sample the posterior over the graph of a finished run by the No-U-Turn sampler.

    The embedding of the run is given, N is summed out. Says whether the chains can be believed; writes mcmc.nc,
    mcmc.json and figures into the folder of the run.

    Attributes:
        run: Folder of a finished run.
        program: What is sampled. hodge: node scores, edge weights and tables, as in training; dags: all graphs of up to
            4 nodes, equally likely beforehand, with Dirichlet tables.
        chains: Number of chains.
        warmup: Steps that adapt and are dropped.
        draws: Draws of each chain.
        seed: Seed of all chains.
        jobs: Chains side by side, each in a process of its own.
        ess: Equivalent sample size of the tables of dags.
        json: Write the numbers to this file, too.
    """

    run: Run
    _: KW_ONLY
    program: Literal["hodge", "dags"] = "hodge"
    chains: Count = 4
    warmup: Steps = 500
    draws: Steps = 500
    seed: Seed = 0
    jobs: Count = 1
    ess: Annotated[float, positive_number, "S"] = 1.0
    json: File | None = None

    @property
    def settings(self) -> Settings:
        """Length of a chain."""
        return Settings(self.warmup, self.draws, full_mass=self.program == "hodge")


def run(options: Options) -> int:
    """Sample, keep the chains in the folder of the run and print what they say; returns the exit status."""
    torch.set_num_threads(1)
    folder = RunFolder(options.run)
    folder.read_config()
    check_finished(folder)
    graph = run_graph(folder.read_posterior(), folder.read_summary())
    chains = _sample(options, graph)
    findings = ChainFindings(graph.samples.nodes, graph.cells, chains, options.program == "hodge")
    _report(options, folder, graph, findings)
    return 0


def _sample(options: Options, graph: RunGraph) -> Chains:
    program = graph.program(options.program, options.ess)
    settings = options.settings
    total = options.chains * (settings.warmup + settings.draws)
    with tqdm(total=total, desc="mcmc", unit="step", disable=None) as bar:
        return run_chains(program, settings, options.chains, options.seed, options.jobs, bar.update)


def _report(options: Options, folder: RunFolder, graph: RunGraph, findings: ChainFindings) -> None:
    """Files, then the table."""
    exact = exact_edges(graph, options.ess)
    prior = prior_edges(graph, options.program, options.seed)
    facts = {
        "program": options.program,
        "prior": graph.prior_of(options.program, options.ess),
        "seed": options.seed,
        "warmup": options.settings.warmup,
        "is_named": graph.is_named,
        "notes": [PRIOR_NOTES[options.program], *([] if graph.is_named else [LABELLING_NOTE])],
    }
    beside = {
        "exact_edge_probability": None if exact is None else exact.tolist(),
        "prior_edge_probability": prior.tolist(),
    }
    routes = {f"chains ({options.program})": findings.edge_probability, "prior of the chains": prior}
    routes |= {} if exact is None else {"exact (BDeu)": exact}
    results = {**facts, **findings.to_plain(), **beside}
    keep_results(
        folder,
        "mcmc",
        results,
        lambda place: write_chain_figures(findings, routes, place),
        options.json,
        write_files=lambda place: write_chains(findings, facts, place / "mcmc.nc"),
    )
    print(chain_report(findings, options.program, exact, prior, graph.is_named))


COMMAND = Command("mcmc", Options, run)
main, parse = COMMAND.main, COMMAND.parse

if __name__ == "__main__":
    sys.exit(main())
