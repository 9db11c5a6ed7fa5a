"""Several starts in the exported file: chains of what is comparable after alignment, and a group of their own."""

from __future__ import annotations

import numpy as np
import xarray as xr

from inference.results.arrays import FitArrays
from inference.results.arviz_names import SAMPLE_ID, cell_names, outcome_dimensions

__all__ = ["chain_coords", "chosen_latent_group", "restarts_group"]


def chain_coords(fit: FitArrays) -> dict[str, object]:
    """Numbers of the chains, and with several starts the start that each of them is."""
    if fit.restarts is None:
        return {"chain": np.arange(1)}
    return {"chain": np.arange(len(fit.restarts.chain)), "start_of_chain": (("chain",), fit.restarts.chain)}


def chosen_latent_group(fit: FitArrays) -> xr.Dataset:
    """Draws of Z of the kept start; empty of a single start, whose draws are in `posterior`.

    Every start has a latent space of its own, so that Z of different starts are no chains of one variable: R-hat would
    compare what can't be compared.
    """
    if fit.restarts is None:
        return xr.Dataset()
    draws = fit.draws
    coords = {
        "chain": np.arange(1),
        "draw": np.arange(len(draws.latent)),
        SAMPLE_ID: draws.samples,
        "latent": np.arange(draws.latent.shape[-1]),
    }
    return xr.Dataset({"Z": (("chain", "draw", SAMPLE_ID, "latent"), draws.latent[None])}, coords=coords)


def restarts_group(fit: FitArrays) -> xr.Dataset:
    """What the starts are judged by, and what of each is not sampled, with cells numbered alike; empty of one start."""
    restarts = fit.restarts
    if restarts is None:
        return xr.Dataset()
    outcomes = outcome_dimensions(fit.graph)
    variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        "entropy": (("start",), restarts.entropy),
        "ari": (("start", "start_other"), restarts.ari),
        "node_agreement": (("chain", "node"), restarts.node_agreement),
        "responsibilities": (("chain", SAMPLE_ID, "cell"), restarts.responsibilities.astype(np.float32)),
        "log_joint": (("chain", *outcomes), restarts.log_joint),
    }
    if restarts.cpdag is not None:
        variables["cpdag"] = (("chain", "node_from", "node_to"), restarts.cpdag.astype(np.int32))
    return xr.Dataset(variables, coords=_coords(fit, restarts.status))


def _coords(fit: FitArrays, status: np.ndarray) -> dict[str, object]:
    nodes = np.array(fit.graph.node_names, dtype=object)
    names = zip(outcome_dimensions(fit.graph), fit.graph.outcome_names, strict=True)
    return {
        **chain_coords(fit),
        "start": np.arange(len(status)),
        "start_other": np.arange(len(status)),
        "status": (("start",), status.astype(object)),
        SAMPLE_ID: fit.draws.samples,
        "cell": np.array(cell_names(fit.graph), dtype=object),
        "node": nodes,
        "node_from": nodes,
        "node_to": nodes,
        **{dim: np.array(levels, dtype=object) for dim, levels in names},
    }
