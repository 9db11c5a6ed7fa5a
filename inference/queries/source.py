"""What a question is answered from: a finished fit, read from its folder or in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from inference.data.environments import observational_rows
from inference.evaluation.run_scores import found_in
from inference.results.fit_result import FitResult
from inference.results.node_samples import check_groups, node_likelihood
from inference.results.run_folder import RunFolder
from inference.training.fitted_run import FittedRun, load_run, rebuild_result

__all__ = ["QuerySource", "source_of_result", "source_of_run"]


@dataclass(frozen=True)
class QuerySource:
    """A finished fit of n samples.

    Attributes:
        fitted: Model, guide, and what is known of the modalities.
        summary: Its summary.
        outcomes: Names of the outcomes of every node, in order.
        responsibilities: q(N|X), `[n, C]`.
        prior: p(N) that they were computed with, `[C]`.
        is_training: Samples that the fit learned from, bool `[n]`.
        environment: Codes of the environments `[n]`, 0 = observational, or None.
        groups: Codes of the groups `[n]`, or None.
        labels: Outcome of each node by labels, `[n, L]`, -1 where none tells it; None: no labels.
        latent: Mean of q(Z|X), `[n, J]`.
        sample_names: Names of the samples, or None.
    """

    fitted: FittedRun
    summary: Mapping[str, Any]
    outcomes: Mapping[str, tuple[str, ...]]
    responsibilities: np.ndarray
    prior: np.ndarray
    is_training: np.ndarray
    environment: np.ndarray | None
    groups: np.ndarray | None
    labels: np.ndarray | None
    latent: np.ndarray
    sample_names: tuple[str, ...] | None

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return tuple(self.outcomes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of outcomes of every node."""
        return tuple(map(len, self.outcomes.values()))

    @property
    def rows(self) -> np.ndarray:
        """Training samples without intervention, bool `[n]`."""
        return observational_rows(self.is_training, self.environment)

    def given_graph(self) -> np.ndarray | None:
        """The graph that the fit was told (`--model.graph fixed:FILE`), `[L, L]`; None: it was told none.

        Files are read by the command line: a configuration says `fixed`, and has the edges.
        """
        if self.fitted.config.model.graph != "fixed":
            return None
        adjacency: np.ndarray = self.fitted.model.graph.adjacency().cpu().numpy()
        return adjacency

    def log_likelihood(self) -> np.ndarray:
        """log p(x_n, labels of n | c) of these samples up to a constant per sample, `[rows, C]`: what graphs score."""
        labels = None if self.labels is None else self.labels[self.rows]
        return node_likelihood(self.responsibilities[self.rows], np.log(self.prior).reshape(self.sizes), labels)


def source_of_run(path: Path | str, device: str = "cpu") -> QuerySource:
    """Read a run folder.

    Args:
        path: The folder.
        device: Where to put the model.

    Raises:
        ValueError: No finished run, or one of an older version whose file lacks the groups of its samples.
    """
    folder = RunFolder(path)
    fitted = load_run(path, device=device)
    posterior, summary = folder.read_posterior(), folder.read_summary()
    check_groups(posterior, summary)
    found = found_in(posterior, labelling=summary.get("labelling"))
    variational, constant = posterior["variational"].dataset, posterior["constant_data"].dataset
    return QuerySource(
        fitted,
        summary,
        dict(zip(found.node_names, found.outcome_names, strict=True)),
        found.responsibilities,
        found.joint.reshape(-1),
        found.split == "train",
        found.environment,
        found.groups,
        constant["node_label"].to_numpy() if "node_label" in constant else None,
        variational["latent_loc"].to_numpy(),
        _sample_names(variational),
    )


def source_of_result(result: FitResult) -> QuerySource:
    """A fit that is in memory.

    Raises:
        ValueError: It diverged.
    """
    fit = result.arrays
    if fit is None:
        raise ValueError(f"the fit diverged ({result.summary['reason']}); there is nothing to ask")
    names = fit.sample_names
    return QuerySource(
        rebuild_result(result),
        result.summary,
        dict(zip(fit.graph.node_names, fit.graph.outcome_names, strict=True)),
        fit.responsibilities,
        np.exp(fit.graph.log_joint.astype(np.float64)).reshape(-1),
        fit.split == "train",
        fit.environment,
        fit.groups,
        fit.node_labels,
        fit.latent_loc,
        None if names is None else tuple(map(str, names)),
    )


def _sample_names(variational: xr.Dataset) -> tuple[str, ...] | None:
    if "sample_name" not in variational.coords:
        return None
    return tuple(map(str, variational.coords["sample_name"].to_numpy()))
