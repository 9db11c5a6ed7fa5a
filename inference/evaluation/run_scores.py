"""The scores of a finished run, from its folder and its samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr

from inference.data.multimodal import MultimodalData
from inference.evaluation.cross_modal import cross_modal
from inference.evaluation.graph_recovery import Effort, Truth
from inference.evaluation.scores import Found, Known, scores_of
from inference.training.fitted_run import FittedRun

__all__ = ["found_in", "known_of", "score_run"]


def found_in(
    posterior: xr.DataTree, groups: np.ndarray | None = None, labelling: Mapping[str, Any] | None = None
) -> Found:
    """What a run found, from its `posterior.nc`.

    Args:
        posterior: As `read_posterior` reads it.
        groups: Codes of the groups of the samples, where the file is of an older version and does not hold them.
        labelling: Where the meaning of the cells comes from, as its summary has it.
    """
    variational, constant = posterior["variational"].dataset, posterior["constant_data"].dataset
    split = constant["split_level"].to_numpy().astype(str)[constant["split"].to_numpy()]
    log_joint = variational["log_joint"]
    return Found(
        variational["responsibilities"].to_numpy(),
        tuple(map(str, variational["node_from"].to_numpy())),
        np.exp(log_joint.to_numpy().astype(np.float64)),
        None if bool(variational["edge_strength"].isnull().all()) else variational["adjacency"].to_numpy(),
        split,
        constant["group"].to_numpy() if "group" in constant else groups,
        constant["labelled"].to_numpy().astype(bool) if "labelled" in constant else None,
        constant["environment"].to_numpy() if "environment" in constant else None,
        tuple(tuple(map(str, variational[dim].to_numpy())) for dim in log_joint.dims),
        labelling,
    )


def known_of(data: MultimodalData | None) -> Known | None:
    """What came with the samples; None without factors."""
    if data is None or not data.factors:
        return None
    truth = Truth(data.true_joint, data.true_adjacency)
    return Known(data.factors, data.factor_levels, truth, data.bayes_ceiling).chosen(data.scored)


def score_run(
    found: Found,
    known: Known | None,
    summary: Mapping[str, Any],
    fitted: FittedRun | None = None,
    data: MultimodalData | None = None,
    draws: int = 50,
    seed: int = 0,
) -> dict[str, Any]:
    """All scores of a run; keys as in docs/evaluate.md.

    Args:
        found: What the run found.
        known: What is known of its samples, or None: then there are only scores that need no truth.
        summary: Its summary, whose `held_out_log_likelihood` and `variance_explained` are taken over.
        fitted: Model and guide; None leaves cross-modal prediction out.
        data: The samples; None leaves it out, too.
        draws: Draws of Z per sample there.
        seed: Seed of these draws and of random labellings.
    """
    scores = {} if known is None else scores_of(found, known, seed, Effort.thorough())
    return {
        **scores,
        "held_out_log_likelihood": summary.get("held_out_log_likelihood"),
        "variance_explained": summary.get("variance_explained", {}),
        "cross_modal": _cross_modal(found, fitted, data, draws, seed),
    }


def _cross_modal(
    found: Found, fitted: FittedRun | None, data: MultimodalData | None, draws: int, seed: int
) -> dict[str, Any]:
    if fitted is None or data is None or len(fitted.modalities) < 2:
        return {}
    scored = cross_modal(fitted, data, found.split, found.responsibilities, draws, seed)
    return {name: asdict(score) for name, score in scored.items()}
