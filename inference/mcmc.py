"""`python -m inference.mcmc`: the posterior over the graph of a finished run by Markov chains, and its diagnostics.

Exit status: 0 done (whatever the verdicts), 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch
from tqdm.auto import tqdm

from inference.command_line.errors import run_command
from inference.command_line.later_results import keep_results
from inference.command_line.mcmc_arguments import Arguments, parse
from inference.graphs.mcmc.chains import Chains, run_chains
from inference.results.chain_file import write_chains
from inference.results.chain_findings import ChainFindings
from inference.results.chain_report import LABELLING_NOTE, PRIOR_NOTES, chain_report
from inference.results.figures.chains import write_chain_figures
from inference.results.run_folder import RunFolder
from inference.results.run_graph import RunGraph, exact_edges, prior_edges, run_graph
from inference.training.fitted_run import check_finished

__all__ = ["main"]


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
