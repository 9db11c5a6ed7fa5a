"""Whether q(Z|X) is near the posterior, sample by sample; and how well held-out samples are predicted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from inference.diagnostics.finding import Finding
from inference.results.arviz_compat import loo
from inference.results.arviz_names import variable_names
from inference.results.pareto import K_LIMIT, psis_khat
from inference.results.text import printable
from inference.results.verdicts import Line, Verdict

__all__ = ["held_out", "k_hat", "loo_per_modality", "split_of_draws"]

_FEW, _MANY = 0.05, 0.3
_FEWEST_DRAWS = 25
_FEWEST_SAMPLES = 20
_MOST_UNRELIABLE = 0.1
_CLEARLY = 3.0

_TOO_FEW = "fewer than 25 draws in posterior.nc"


def _log_weight(posterior: xr.DataTree) -> np.ndarray:
    """Of the kept start, `[draw, sample]`."""
    weight: np.ndarray = posterior["sample_stats"].dataset["log_weight"].to_numpy()[0].astype(np.float64)
    return weight


def k_hat(posterior: xr.DataTree) -> Finding:
    """PSIS k-hat of log p(x, z) - log q(z|x) for every sample that has draws.

    R-hat and effective sample size of draws from a guide say nothing: they are independent, of whatever distribution.

    Args:
        posterior: As `read_posterior` reads it.
    """
    weight, name = _log_weight(posterior), "guide, k-hat"
    if len(weight) < _FEWEST_DRAWS:
        return Finding.skipped("k_hat", name, _TOO_FEW)
    values = psis_khat(weight)
    share = float((values > K_LIMIT).mean())
    text = f"above {K_LIMIT} in {100 * share:.0f} % of {len(values)} samples (median {np.median(values):.2f})"
    entry = {
        "share_above": share,
        "limit": K_LIMIT,
        "median": float(np.median(values)),
        "n_draws": len(weight),
        "samples": posterior["sample_stats"].dataset["sample_id"].to_numpy().tolist(),
        "values": values.tolist(),
    }
    return Finding((_k_hat_line(name, text, share),), {"k_hat": entry})


def _k_hat_line(name: str, text: str, share: float) -> Line:
    if share <= _FEW:
        return Line("k_hat", name, text, "passes")
    verdict: Verdict = "unclear" if share <= _MANY else "fails"
    advice = (
        "q(Z|X) is not the posterior of the reported model there: bounds of log p(x) are too low; a lower "
        "decoder.variance_floor if the noise is at it, else train longer"
    )
    return Line("k_hat", name, text, verdict, advice)


def split_of_draws(posterior: xr.DataTree) -> np.ndarray:
    """Split of the samples that have draws, `[sample]` of str."""
    constant, samples = posterior["constant_data"].dataset, posterior["sample_stats"].dataset["sample_id"].to_numpy()
    return constant["split_level"].to_numpy().astype(str)[constant["split"].to_numpy()][samples]


def held_out(posterior: xr.DataTree, summary: Mapping[str, Any], fresh: Mapping[str, Any] | None = None) -> Finding:
    """The importance-weighted bound of held-out log p(x), beside the same of training samples.

    Args:
        posterior: As `read_posterior` reads it.
        summary: The summary of the run, with `held_out_log_likelihood`.
        fresh: The bound with more draws, in the same form; None: that of the summary.
    """
    name, found = "held-out log p(x)", fresh or summary.get("held_out_log_likelihood")
    if found is None:
        advice = "hold some out: --training.validation_fraction 0.1; or python -m inference.diagnose RUN --folds 5"
        return Finding.skipped("held_out", name, "no samples, or groups, were held out", advice)
    text = f"bound {found['per_sample']:.2f} ± {found['standard_error']:.2f} nats per sample ({found['n_draws']} draws)"
    train, deviation, n_train = _training_bound(posterior)
    values: dict[str, Any] = {"held_out_log_likelihood": {**found, "training": train}}
    if train is None:
        return Finding((Line("held_out", name, text, "passes"),), values)
    # The error of a fit that is as good on new samples: those of the held-out ones, where a few that it gets wrong
    # have a spread of their own, would excuse them.
    error = deviation * np.sqrt(1 / n_train + 1 / _n_held_out(posterior, found))
    excess = (train - found["per_sample"]) / float(error)
    return Finding((_held_out_line(name, f"{text}; training samples {train:.2f}", excess),), values)


def _training_bound(posterior: xr.DataTree) -> tuple[float | None, float, int]:
    """Mean and deviation of the training samples with draws, and how many are independent; None of under twenty."""
    is_train = split_of_draws(posterior) == "train"
    weight = _log_weight(posterior)[:, is_train]
    if weight.shape[1] < _FEWEST_SAMPLES:
        return None, 0.0, 0
    bound = np.logaddexp.reduce(weight, axis=0) - np.log(len(weight))
    samples = posterior["sample_stats"].dataset["sample_id"].to_numpy()[is_train]
    return float(bound.mean()), float(bound.std(ddof=1)), _n_independent(posterior, samples)


def _n_held_out(posterior: xr.DataTree, found: Mapping[str, Any]) -> int:
    """How many of the held-out samples are independent."""
    constant = posterior["constant_data"].dataset
    split = constant["split_level"].to_numpy().astype(str)[constant["split"].to_numpy()]
    rows = np.flatnonzero(split == found.get("split"))
    return _n_independent(posterior, rows) if len(rows) else int(found["n_samples"])


def _n_independent(posterior: xr.DataTree, samples: np.ndarray) -> int:
    """Groups of replicates among these samples, else the samples themselves."""
    constant = posterior["constant_data"].dataset
    return len(np.unique(constant["group"].to_numpy()[samples])) if "group" in constant else len(samples)


def _held_out_line(name: str, text: str, excess: float) -> Line:
    if excess <= _CLEARLY:
        return Line("held_out", name, text, "passes")
    advice = "the fit is better on samples that it was trained on: fewer epochs, smaller networks, or more samples"
    return Line("held_out", name, f"{text}, higher by {excess:.0f} standard errors", "unclear", advice)


def loo_per_modality(posterior: xr.DataTree, summary: Mapping[str, Any]) -> Finding:
    """`loo` of log p(x_m | z, N), given the z of the sample itself: no estimate of how new samples are predicted.

    Args:
        posterior: As `read_posterior` reads it.
        summary: For the names of the modalities.
    """
    group = posterior["log_likelihood"].dataset
    lines, values = [], {}
    for name, variable in variable_names(summary["modalities"]).items():
        draws = group[variable].to_numpy()[:1] if variable in group else np.empty((1, 0, 0))
        title = f"loo of {printable(name)} given z"
        if draws.shape[1] < _FEWEST_DRAWS or not np.isfinite(draws).all():
            lines.append(Line(f"loo_{name}", title, _TOO_FEW, "skipped"))
            continue
        found = loo(draws)
        unreliable = float((found.pareto_k > K_LIMIT).mean())
        values[name] = {
            "elpd": found.elpd,
            "standard_error": found.standard_error,
            "p": found.p,
            "share_k_above": unreliable,
            "n_samples": draws.shape[-1],
            "conditional_on": "z",
        }
        lines.append(_loo_line(f"loo_{name}", title, values[name]))
    return Finding(tuple(lines), {"loo": values})


def _loo_line(key: str, title: str, found: Mapping[str, Any]) -> Line:
    text = (
        f"elpd {found['elpd']:.1f} ± {found['standard_error']:.1f} nats over {found['n_samples']} samples, conditional "
        f"on z: no estimate of generalisation; Pareto k above {K_LIMIT} in {100 * found['share_k_above']:.0f} %"
    )
    if found["share_k_above"] <= _MOST_UNRELIABLE:
        return Line(key, title, text, "passes")
    return Line(key, title, text, "unclear", "do not use this number; held-out log p(x) is what to compare fits by")
