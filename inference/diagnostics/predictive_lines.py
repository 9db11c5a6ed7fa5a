"""Posterior predictive checks of all modalities of a run, with verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import norm

from inference.diagnostics.finding import Finding
from inference.diagnostics.predictive import Predictive, Statistic, check_modality
from inference.results.arviz_names import variable_names
from inference.results.text import printable
from inference.results.verdicts import Line, Verdict

__all__ = ["predictive_checks", "predictive_lines"]

_SMALL, _LARGE = 0.05, 0.15
_EXTREME = 0.025
_ERRORS = 3.0
_NEAR, _FAR = 0.05, 0.1
_FALSE_ALARM = 0.05


def predictive_checks(posterior: xr.DataTree, summary: Mapping[str, Any]) -> tuple[Finding, dict[str, Predictive]]:
    """Checks of every modality that has replicates.

    Args:
        posterior: As `read_posterior` reads it.
        summary: For names and kinds of the modalities.
    """
    found = {}
    for name, variable in variable_names(summary["modalities"]).items():
        if "posterior_predictive" in posterior.children and variable in posterior["posterior_predictive"].dataset:
            found[name] = _check(posterior, variable, summary["modalities"][name])
    lines = [line for name, checks in found.items() for line in predictive_lines(name, checks)]
    plain = {name: checks.to_plain() for name, checks in found.items()}
    return Finding(tuple(lines), {"predictive": plain}), found


def _check(posterior: xr.DataTree, variable: str, modality: Mapping[str, Any]) -> Predictive:
    replicated = posterior["posterior_predictive"].dataset[variable]
    observed = posterior["observed_data"].dataset[variable].to_numpy().astype(np.float64)
    variational = posterior["variational"].dataset
    samples = replicated.coords[replicated.dims[2]].to_numpy()
    cells = variational["responsibilities"].to_numpy()[samples].argmax(1)
    names = tuple(map(str, variational["cell"].to_numpy()))
    values = replicated.to_numpy()[0].astype(np.float64)
    constant = posterior["constant_data"].dataset if "constant_data" in posterior.children else {}
    groups = constant["group"].to_numpy()[samples] if "group" in constant else None
    return check_modality(values, observed, cells, names, modality["kind"], modality["likelihood"], groups=groups)


def predictive_lines(name: str, checks: Predictive) -> list[Line]:
    """One line for statistics, one for intervals.

    A statistic is off where p is below 2.5 % or above 97.5 % and the departure above three standard errors; then its
    relative size (`predictive`) beyond 5 % is `unclear`, and beyond 15 % `fails`. Intervals pass within 5 points of
    what they should cover, or within what chance takes off a right model in 19 of 20 cases, over all levels: 2.24
    standard errors each. They fail beyond 10 points and three standard errors. Too few samples to tell 10 points from
    chance pass nothing.
    """
    return [_statistics_line(name, checks), *([_coverage_line(name, checks)] if checks.coverage else [])]


def _statistics_line(name: str, checks: Predictive) -> Line:
    key, title = f"predictive_{name}", f"replicated {printable(name)}"
    worst = max(checks.statistics, key=_excess, default=None)
    if worst is None or _excess(worst) <= _SMALL:
        number = len({one.name for one in checks.statistics})
        text = (
            f"{number} statistics, overall and by cluster, differ from those of the data by chance, or by 5 % at most"
        )
        return Line(key, title, text, "passes")
    n_off = sum(_excess(one) > _SMALL for one in checks.statistics)
    where = "all samples" if worst.cell is None else f"cluster {printable(worst.cell)}"
    text = (
        f"{n_off} of {len(checks.statistics)} statistics are off; most: {worst.name} of {where}, data "
        f"{worst.observed:.3g}, replicated {worst.replicated.mean():.3g} (p = {worst.p_value:.2f})"
    )
    verdict: Verdict = "unclear" if _excess(worst) <= _LARGE else "fails"
    return Line(key, title, text, verdict, _advice(worst))


def _excess(one: Statistic) -> float:
    """Relative size of a departure that is no chance; 0 else."""
    is_chance = _EXTREME <= one.p_value <= 1 - _EXTREME or abs(one.departure) <= _ERRORS * one.error
    return 0.0 if is_chance else abs(one.departure)


_ADVICE = {
    "mean": "the decoder misses the level: larger networks, or more epochs",
    "roughness": "noise of neighbouring elements is not independent, or has another size: intervals are wrong",
}


def _advice(one: Statistic) -> str:
    other = "the noise model does not fit: another likelihood (docs/likelihoods.md) or transform, or a larger decoder"
    return _ADVICE.get(one.name, other)


def _coverage_line(name: str, checks: Predictive) -> Line:
    key, title = f"coverage_{name}", f"intervals of {printable(name)}"
    text = ", ".join(
        f"{100 * level:g} % interval holds {100 * found:.0f} %" for level, (found, *_) in checks.coverage.items()
    )
    off = [(abs(found - due), error) for found, due, error in checks.coverage.values()]
    by_chance = norm.isf(_FALSE_ALARM / len(off) / 2)
    if all(departure <= max(_NEAR, by_chance * error) for departure, error in off):
        if by_chance * checks.coverage[0.9][2] <= _FAR:
            return Line(key, title, text, "passes")
        return Line(key, title, f"{text}: too few samples to tell", "skipped")
    narrow = checks.coverage[0.9][0] < checks.coverage[0.9][1]
    advice = (
        "intervals are too narrow: outliers (--modality.NAME.decoder.likelihood student_t), or noise that varies"
        if narrow
        else "intervals are too wide: the variance is that of other elements or samples (decoder.variance_per element)"
    )
    is_far = any(departure > max(_FAR, _ERRORS * error) for departure, error in off)
    return Line(key, title, text, "fails" if is_far else "unclear", advice)
