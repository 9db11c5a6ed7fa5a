"""Chains as a netCDF file in the ArviZ schema; knows no torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from causalpima.inference.findings.chains import ChainFindings
from causalpima.inference.reporting.arviz import EDGE_CONVENTION
from causalpima.inference.store.files import file_attributes, library_versions, to_json, write_bytes

__all__ = [
    "chain_tree",
    "write_chains",
]


_MOST_NUMBERS = 2**21
_DRAWS = ("chain", "draw")


def chain_tree(findings: ChainFindings, facts: Mapping[str, Any]) -> xr.DataTree:
    """Groups `posterior` and `sample_stats`.

    `posterior` has `cell_probability` [chain, draw, cell], `directed_edge` [chain, draw, pair] of the pairs of nodes
    whose edge varies and the sampled sites, as far as there are at most two million numbers of a site (a file of at
    most some ten MB). The whole of `edge` [chain, draw, node_from, node_to] is a coordinate: no node has an edge to
    itself, and ArviZ's `summary` divides by the variance of such a constant.

    Args:
        findings: The chains.
        facts: What else is to be known, plain values: program, prior, seed.
    """
    groups = {"posterior": _posterior(findings), "sample_stats": _sample_stats(findings)}
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = {
        **file_attributes(),
        "edge_convention": EDGE_CONVENTION,
        "facts": to_json({"versions": library_versions(), **facts}, indent=None),
    }
    return tree


def write_chains(findings: ChainFindings, facts: Mapping[str, Any], path: Path | str) -> None:
    """Write `chain_tree`, whole or not at all.

    Raises:
        OutputError: The disk is full, the folder is missing or not writable.
    """
    write_bytes(path, bytes(chain_tree(findings, facts).to_netcdf(engine="h5netcdf")))


def _posterior(findings: ChainFindings) -> xr.Dataset:
    chains = findings.chains
    nodes = np.array(findings.nodes, dtype=object)
    start, end = np.nonzero(np.ptp(chains.edge, axis=(0, 1)))
    variables: dict[str, Any] = {
        "cell_probability": ((*_DRAWS, "cell"), chains.cell_probability),
        "directed_edge": ((*_DRAWS, "pair"), chains.edge[:, :, start, end]),
    }
    for name, values in chains.draws.items():
        if values.size <= _MOST_NUMBERS:
            dims = [f"{name}_{axis}" for axis in range(values.ndim - 2)]
            variables[name] = ((*_DRAWS, *dims), values)
    coords = {
        "cell": np.array(findings.cells, dtype=object),
        "node_from": nodes,
        "node_to": nodes,
        "pair": np.array([f"{nodes[i]} -> {nodes[j]}" for i, j in zip(start, end, strict=True)], dtype=object),
        "edge": ((*_DRAWS, "node_from", "node_to"), chains.edge),
    }
    return xr.Dataset(variables, coords={**_coords(findings), **coords})


def _sample_stats(findings: ChainFindings) -> xr.Dataset:
    chains = findings.chains
    step = np.broadcast_to(chains.step_size[:, None], chains.energy.shape)
    variables = {"lp": chains.log_density, "energy": chains.energy, "diverging": chains.diverging, "step_size": step}
    return xr.Dataset({name: (_DRAWS, values) for name, values in variables.items()}, coords=_coords(findings))


def _coords(findings: ChainFindings) -> dict[str, np.ndarray]:
    n_chains, n_draws = findings.chains.energy.shape
    return {"chain": np.arange(n_chains), "draw": np.arange(n_draws)}
