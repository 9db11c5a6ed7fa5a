"""The checks of a fit: from its file, with its samples where they are known."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from inference.checks.check import check_embedded
from inference.checks.embedded_run import embedded_run, kept_samples
from inference.checks.experts import encode_modalities
from inference.checks.result import CheckResult
from inference.data.multimodal import MultimodalData
from inference.training.fitted_run import FittedRun
from inference.training.observed import observed_labels

__all__ = ["check_run"]


def check_run(
    fitted: FittedRun,
    posterior: xr.DataTree,
    summary: Mapping[str, Any],
    data: MultimodalData | None,
    repetitions: int = 20,
    seed: int = 0,
    done: Callable[[], object] = lambda: None,
) -> CheckResult:
    """Run all controls (docs/check.md).

    Args:
        fitted: Model and guide.
        posterior: As `read_posterior` reads it.
        summary: The summary of the run.
        data: The samples of the run; None leaves out what needs them: shuffles of fused modalities, groups, labels.
        repetitions: Repetitions.
        seed: Seed.
        done: Called after every refit.

    Raises:
        ValueError: The samples are not those of the run, or numbers are out of range.
    """
    kept = kept_samples(posterior)
    run = embedded_run(posterior, summary, fitted.config, data)
    if data is not None:
        fusion = copy.deepcopy(fitted.guide.fusion).double().cpu()  # as experts are
        run = embedded_run(posterior, summary, fitted.config, data, encode_modalities(fitted, data, kept), fusion)
    return CheckResult.of(check_embedded(run, repetitions, seed, _codes(fitted, data, kept), done))


def _codes(fitted: FittedRun, data: MultimodalData | None, kept: np.ndarray) -> np.ndarray | None:
    if data is None or not fitted.config.observe.variables:
        return None
    labels = observed_labels(fitted.config, data, kept)
    return None if labels is None else labels.codes[kept]
