"""All diagnostics of a finished run, from its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from inference.data.multimodal import MultimodalData
from inference.data.sample_subset import sample_subset
from inference.diagnostics.chains import chains, read_chains
from inference.diagnostics.finding import Finding
from inference.diagnostics.fit_state import calibration, clusters, decoder_variances
from inference.diagnostics.folds import log_evidence
from inference.diagnostics.guide_fit import held_out, k_hat, loo_per_modality
from inference.diagnostics.latent import latent_dimensions
from inference.diagnostics.predictive import Predictive
from inference.diagnostics.predictive_lines import predictive_checks
from inference.diagnostics.starts import invariants, starts
from inference.results.posterior_draws import standard_error
from inference.results.verdicts import Line, Verdict, counts, no_better_than, verdict_table, worst
from inference.training.fitted_run import FittedRun

__all__ = ["Diagnosis", "FoundRun", "diagnose", "fresh_bound"]


@dataclass(frozen=True)
class FoundRun:
    """What a finished run left.

    Attributes:
        fitted: Model and guide.
        posterior: As `read_posterior` reads it.
        summary: Its summary.
        chains_file: `mcmc.nc`, which need not be there; None where there is no folder.
    """

    fitted: FittedRun
    posterior: xr.DataTree
    summary: Mapping[str, Any]
    chains_file: Path | None = None


@dataclass(frozen=True)
class Diagnosis:
    """What the diagnostics found (docs/diagnose.md).

    Attributes:
        lines: One or more lines per diagnostic.
        values: Plain values by key.
        predictive: Checks per modality, for figures.
        ranks: What chains or starts are compared by, `[chain, draw]` by name; empty where there is one of them.
    """

    lines: tuple[Line, ...]
    values: Mapping[str, Any]
    predictive: Mapping[str, Predictive]
    ranks: Mapping[str, np.ndarray]

    @property
    def verdict(self) -> str:
        """The worst of all lines."""
        return worst(line.verdict for line in self.lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` writes them."""
        return {"verdict": self.verdict, "lines": [line.to_plain() for line in self.lines], **self.values}

    def text(self) -> str:
        """The table for a terminal."""
        return "\n".join([f"Diagnostics: {counts(self.lines)}.", "", verdict_table(self.lines)])

    def write_figures(self, folder: Path | str) -> list[Path]:
        """Write `k_hat.png`, `predictive_MODALITY.png` and `rank_plots.png`, of what there is.

        Raises:
            OutputError: The disk is full, or the folder can't be written to.
        """
        from inference.results.figures.diagnostics import write_diagnostic_figures

        return write_diagnostic_figures(self, folder)


def diagnose(run: FoundRun, fresh: Mapping[str, Any] | None = None, folds: Finding | None = None) -> Diagnosis:
    """Run every diagnostic that there is something for.

    Args:
        run: The run.
        fresh: The bound of held-out log p(x) with more draws (`fresh_bound`), or None.
        folds: What refits without parts of the samples found, or None.
    """
    posterior, summary = run.posterior, run.summary
    checks, predictive = predictive_checks(posterior, summary)
    found = [
        clusters(summary),
        calibration(summary),
        latent_dimensions(posterior, run.fitted.config.model.latent_dim),
        decoder_variances(summary, run.fitted),
        k_hat(posterior),
        held_out(posterior, summary, fresh),
        *([folds] if folds is not None else []),
        loo_per_modality(posterior, summary),
        checks,
        starts(posterior),
        chains(None if run.chains_file is None else read_chains(run.chains_file)),
    ]
    limit: Verdict = "passes" if summary["status"] == "ok" else "unclear"
    lines = [
        Line(line.key, line.name, line.found, no_better_than(limit, line.verdict), line.advice)
        for finding in found
        for line in finding.lines
    ]
    values = {key: value for finding in found for key, value in finding.values.items()}
    return Diagnosis(tuple(lines), values, predictive, _ranks(posterior))


def _ranks(posterior: xr.DataTree) -> dict[str, np.ndarray]:
    if "restarts" not in posterior.children or posterior["restarts"].sizes["chain"] < 2:
        return {}
    found = invariants(posterior)
    shares = found.pop("shares of the clusters")
    return {**found, **{f"share of cluster {k + 1}": shares[..., k] for k in range(min(shares.shape[-1], 8))}}


def fresh_bound(run: FoundRun, data: MultimodalData, draws: int, seed: int) -> dict[str, Any] | None:
    """The importance-weighted bound with more draws than posterior.nc has, over all held-out samples.

    Args:
        run: The run.
        data: All its samples.
        draws: Draws of Z per sample.
        seed: Of the draws.

    Returns:
        As `held_out_log_likelihood` of a summary; None without held-out samples, or groups.

    Raises:
        ValueError: The samples are not those of the run.
    """
    constant = run.posterior["constant_data"].dataset
    split = constant["split_level"].to_numpy().astype(str)[constant["split"].to_numpy()]
    if data.n_samples != len(split):
        raise ValueError(f"data: expected the {len(split)} samples of the run, got {data.n_samples}; fit again")
    part = "test" if (split == "test").any() else "validation"
    rows = np.flatnonzero(split == part)
    units = rows if data.groups is None else data.groups[rows]
    if len(np.unique(units)) < 2:
        return None
    values = log_evidence(run.fitted, sample_subset(data, rows), draws, seed)
    error = standard_error(values, units)
    return {
        "per_sample": float(values.mean()),
        "standard_error": error,
        "n_samples": len(rows),
        "n_draws": draws,
        "split": part,
    }
