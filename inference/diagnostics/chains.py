"""Markov chains of `python -m inference.mcmc`: whether they agree with each other and are long enough."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from inference.diagnostics.finding import Finding
from inference.graphs.mcmc.chains import Chains
from inference.results.arviz_export import read_posterior
from inference.results.chain_findings import ChainFindings

__all__ = ["chains", "read_chains"]


def read_chains(file: Path) -> ChainFindings | None:
    """What `python -m inference.mcmc` left, without the sampled sites; None where it was not run.

    Args:
        file: `mcmc.nc` of the run.

    Raises:
        ValueError: The file can't be read, or is another one.
    """
    if not file.exists():
        return None
    tree = read_posterior(file, file.parent)
    try:
        posterior, stats = tree["posterior"].dataset, tree["sample_stats"].dataset
        chains = Chains(
            cell_probability=posterior["cell_probability"].to_numpy(),
            edge=posterior["edge"].to_numpy(),
            log_density=stats["lp"].to_numpy(),
            energy=stats["energy"].to_numpy(),
            diverging=stats["diverging"].to_numpy().astype(bool),
            step_size=stats["step_size"].to_numpy()[:, 0],
            draws={},
        )
        nodes, cells = (tuple(map(str, posterior[name].to_numpy())) for name in ("node_from", "cell"))
        program = json.loads(tree.attrs["facts"])["program"]
    except KeyError as error:
        raise ValueError(
            f"{file}: expected the chains of python -m inference.mcmc, got a file without {error}; run it again"
        ) from error
    return ChainFindings(nodes, cells, chains, program == "hodge")


def chains(found: ChainFindings | None) -> Finding:
    """Lines and numbers of the chains, as `inference.mcmc` itself has them (docs/mcmc.md).

    Args:
        found: The chains, or None.
    """
    if found is None:
        return Finding.skipped(
            "mcmc",
            "chains (NUTS)",
            "no chains were there when this was run",
            "python -m inference.mcmc RUN, then this again",
        )
    lines = tuple(replace(line, key=f"mcmc_{line.key}", name=f"chains: {line.name}") for line in found.lines())
    keys = ("r_hat", "ess", "n_divergent", "e_bfmi", "n_chains", "n_draws")
    return Finding(lines, {"mcmc": {key: value for key, value in found.to_plain().items() if key in keys}})
