"""What a question is answered from: a finished fit, read from its folder or in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from inference.evaluation.run_scores import found_in
from inference.graphs.mixture_likelihood import log_likelihood_ratio
from inference.results.arviz_export import read_posterior
from inference.results.fit_result import FitResult
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
        return self.is_training if self.environment is None else self.is_training & (self.environment == 0)

    def given_graph(self) -> np.ndarray | None:
        """The graph that the fit was told (`--model.graph fixed:FILE`), `[L, L]`; None: it was told none."""
        if not self.fitted.config.model.graph.startswith("fixed:"):
            return None
        adjacency: np.ndarray = self.fitted.model.graph.adjacency().cpu().numpy()
        return adjacency

    def log_likelihood(self) -> np.ndarray:
        """log p(x_n | c) of these samples up to a constant per sample, `[rows, C]`."""
        return log_likelihood_ratio(self.responsibilities[self.rows], self.prior / self.prior.sum())


def source_of_run(path: Path | str, groups: np.ndarray | None = None, device: str = "cpu") -> QuerySource:
    """Read a run folder.

    Args:
        path: The folder.
        groups: Codes of the groups of its samples, which the folder does not hold.
        device: Where to put the model.

    Raises:
        ValueError: No finished run.
    """
    folder = RunFolder(path)
    fitted = load_run(path, device=device)
    posterior, summary = read_posterior(folder.posterior), folder.read_summary()
    found = found_in(posterior, groups, summary.get("labelling"))
    variational = posterior["variational"].dataset
    return QuerySource(
        fitted,
        summary,
        dict(zip(found.node_names, found.outcome_names, strict=True)),
        found.responsibilities,
        found.joint.reshape(-1),
        found.split == "train",
        found.environment,
        groups,
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
        fit.latent_loc,
        None if names is None else tuple(map(str, names)),
    )


def _sample_names(variational: xr.Dataset) -> tuple[str, ...] | None:
    if "sample_name" not in variational.coords:
        return None
    return tuple(map(str, variational.coords["sample_name"].to_numpy()))
