"""What the samples of a fit tell of its nodes: the likelihood behind every score of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from inference.data.environments import observational_rows
from inference.graphs.group_weights import group_weights
from inference.graphs.mixture_likelihood import log_likelihood_ratio
from inference.graphs.mixture_posterior import NodeSamples
from inference.labelling.labels import allowed_cells
from inference.results.arrays import FitArrays

__all__ = ["check_groups", "node_likelihood", "node_samples", "node_samples_of_file", "observational_rows_of_file"]


def node_samples(fit: FitArrays) -> NodeSamples | None:
    """The training samples without intervention, with what labels tell of them; None where there are none.

    Args:
        fit: A finished fit.
    """
    facts = _Facts(fit.split, fit.environment, fit.groups, fit.node_labels)
    return _samples(fit.graph.node_names, fit.responsibilities, fit.graph.log_joint, facts)


def node_samples_of_file(posterior: xr.DataTree) -> NodeSamples | None:
    """The same of a `posterior.nc`, as `read_posterior` reads it."""
    variational, constant = posterior["variational"].dataset, posterior["constant_data"].dataset
    facts = _Facts(_split(constant), *(_of(constant, name) for name in ("environment", "group", "node_label")))
    nodes = tuple(map(str, variational["node_from"].to_numpy()))
    return _samples(nodes, variational["responsibilities"].to_numpy(), variational["log_joint"].to_numpy(), facts)


def check_groups(posterior: xr.DataTree, summary: Mapping[str, Any]) -> None:
    """Refuse a file of an older version without the groups: replicates would count as independent samples.

    Args:
        posterior: A `posterior.nc`.
        summary: Its `summary.json`.

    Raises:
        ValueError: The run had groups, and the file has none.
    """
    if "group" not in posterior["constant_data"] and (summary.get("clusters") or {}).get("n_groups") is not None:
        raise ValueError(
            "posterior.nc: expected the groups of the samples, got a file of an older version of this program; fit "
            "again"
        )


def observational_rows_of_file(posterior: xr.DataTree) -> np.ndarray:
    """Which samples of a `posterior.nc` are training samples without intervention, bool `[n]`."""
    constant = posterior["constant_data"].dataset
    return observational_rows(_split(constant) == "train", _of(constant, "environment"))


def node_likelihood(
    responsibilities: np.ndarray, log_joint: np.ndarray, labels: np.ndarray | None = None
) -> np.ndarray:
    """log p(x_n, labels of n | c) less log p(x_n), `[n, C]`; -inf in cells that the labels of a sample rule out.

    Where a label contradicts what the modalities say beyond what numbers hold, the label alone counts.

    Args:
        responsibilities: q(N|X), `[n, C]`.
        log_joint: log p(N) that they were computed with, `[C_1, ..., C_L]`.
        labels: Outcome of each node, `[n, L]`, -1 where no label tells it; None: no labels.

    Raises:
        ValueError: Responsibilities that are no numbers.
    """
    joint = np.exp(log_joint.astype(np.float64))
    likelihood = log_likelihood_ratio(responsibilities, joint / joint.sum())
    if labels is None:
        return likelihood
    allowed = allowed_cells(labels, log_joint.shape)
    seen = np.where(allowed, likelihood, -np.inf)
    is_lost = ~np.isfinite(seen.max(1, keepdims=True))
    return np.where(is_lost & allowed, 0.0, seen)


class _Facts(NamedTuple):
    """Of every sample: the part it is in, its environment, its group, and outcomes of nodes by labels."""

    split: np.ndarray
    environment: np.ndarray | None
    groups: np.ndarray | None
    labels: np.ndarray | None


def _samples(
    nodes: tuple[str, ...], responsibilities: np.ndarray, log_joint: np.ndarray, facts: _Facts
) -> NodeSamples | None:
    rows = observational_rows(facts.split == "train", facts.environment)
    if not rows.any():
        return None
    labels, groups = (None if found is None else found[rows] for found in (facts.labels, facts.groups))
    likelihood = node_likelihood(responsibilities[rows], log_joint, labels)
    return NodeSamples(nodes, log_joint.shape, likelihood, group_weights(groups))


def _split(constant: xr.Dataset) -> np.ndarray:
    """`train`, `validation` or `test` per sample."""
    names: np.ndarray = constant["split_level"].to_numpy().astype(str)
    return names[constant["split"].to_numpy()]


def _of(constant: xr.Dataset, name: str) -> np.ndarray | None:
    return constant[name].to_numpy() if name in constant else None
