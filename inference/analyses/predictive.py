r"""Posterior predictive checks of one modality: replicated against observed data.

**Statistics.** T of the replicates of every draw against T of the data, $p = P(T(x^{rep}) \ge T(x))$, over all samples
and over those of each cluster. With many samples p is extreme for departures that nobody would mind, so that the size
of the departure stands beside it: of a mean, minimum or maximum in standard deviations of the values, of an sd or a
roughness (as the sd that it belongs to) as a share of that of the data.

**Intervals.** The rank of each measured element among its D replicates, `PIT = (rank + 1/2) / (D + 1)`; ties are broken
at random. Its distribution is uniform where the model is right. Then the share of elements inside of an interval that
should hold p of them has the standard error $\sqrt{p (1 - p) / n}$: it belongs to p, not to the share $\hat p$ that was
found, since an interval that holds too few is no less wrong for being uncertain. Elements of one sample (or of one
group of replicates) depend on each other, so that n is the effective number of independent ones, $\hat p (1 - \hat p)$
over the variance of $\hat p$ between samples, and no less than the number of samples.

Replicates of a sample are drawn from q(Z|X) of that sample: they have seen it. Both checks are therefore conservative,
and a fit that passes may still be wrong about new samples (Gelman et al. 2013, chapter 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
import xarray as xr

from causalpima.inference.findings.names import variable_names
from causalpima.inference.findings.verdicts import Finding, Line, Verdict
from causalpima.inference.store.text import format_value, printable

__all__ = [
    "Predictive",
    "Statistic",
    "check_modality",
    "expected_coverage",
    "predictive_checks",
    "predictive_lines",
]


LEVELS = (0.5, 0.9)

_FEWEST = 20
_N_BINS = 20
_MOST_CODES = 6
_SQUARED = ("roughness", "squared distance from the mean")


@dataclass(frozen=True)
class Statistic:
    """One statistic over some samples.

    Attributes:
        name: `mean`, `sd`, `minimum`, `maximum`, `roughness` or `share of CODE`.
        cell: Name of the cluster, or None over all samples.
        observed: Of the data.
        replicated: Of the replicates, `[D]`.
        departure: Of the data from the mean of the replicates, relative as the head of this module says.
        error: Standard deviation of what replicates depart by, relative, too.
        n_samples: Number of samples.
    """

    name: str
    cell: str | None
    observed: float
    replicated: np.ndarray
    departure: float
    error: float
    n_samples: int

    @property
    def p_value(self) -> float:
        """P(T of a replicate is at least that of the data), ties counted half."""
        above, equal = self.replicated > self.observed, self.replicated == self.observed
        return float((above + equal / 2).mean())


@dataclass(frozen=True)
class Predictive:
    """Checks of one modality.

    Attributes:
        statistics: Over all samples, and over each cluster of at least twenty.
        coverage: Per level, the share of elements inside of the central interval, what is expected of D draws, and the
            standard error that the share has if that is right; empty for categories.
        pit: Histogram of the PIT over 20 bins, shares; None for categories.
    """

    statistics: tuple[Statistic, ...]
    coverage: Mapping[float, tuple[float, float, float]]
    pit: np.ndarray | None

    def to_plain(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "statistics": [
                {
                    "name": one.name,
                    "cell": one.cell,
                    "observed": one.observed,
                    "replicated": float(one.replicated.mean()),
                    "p_value": one.p_value,
                    "departure": one.departure,
                    "standard_error": one.error,
                    "n_samples": one.n_samples,
                }
                for one in self.statistics
            ],
            "coverage": {
                f"{level:g}": {"found": found, "expected": expected, "standard_error": error}
                for level, (found, expected, error) in self.coverage.items()
            },
            "pit": None if self.pit is None else self.pit.tolist(),
        }


def check_modality(
    replicated: np.ndarray,
    observed: np.ndarray,
    cells: np.ndarray,
    cell_names: tuple[str, ...],
    kind: str,
    likelihood: str,
    seed: int = 0,
    groups: np.ndarray | None = None,
) -> Predictive:
    """Compare replicates with the data.

    Args:
        replicated: `[D, S, *shape]`, D draws.
        observed: `[S, *shape]`; NaN where an element is missing.
        cells: Most probable cluster of each sample, `[S]`.
        cell_names: Names of the clusters.
        kind: `image`, `curve` or `vector`: whether elements have neighbours.
        likelihood: `categorical` has shares of codes and no intervals.
        seed: For ties.
        groups: Codes of the groups of replicates, `[S]`, which are independent of each other; None: samples are.
    """
    statistics = _of_categories(observed) if likelihood == "categorical" else _of_numbers(kind, observed)
    found = list(_statistics(statistics, replicated, observed, cells, cell_names))
    if likelihood == "categorical":
        return Predictive(tuple(found), {}, None)
    pit = _pit(replicated, observed, np.random.default_rng(seed))
    return Predictive(tuple(found), _coverage(pit, len(replicated), groups), _histogram(pit))


Of = Callable[[np.ndarray], np.ndarray]
"""From values `[..., E...]` to one value per sample."""


def _statistics(
    named: Mapping[str, Of], replicated: np.ndarray, observed: np.ndarray, cells: np.ndarray, names: tuple[str, ...]
) -> Iterator[Statistic]:
    values = np.where(np.isnan(observed), np.nan, replicated)
    groups: list[tuple[str | None, np.ndarray]] = [(None, np.arange(len(observed)))]
    groups += [(name, np.flatnonzero(cells == cell)) for cell, name in enumerate(names)]
    for name, of in named.items():
        own, copies = of(observed), of(values)
        for cell, rows in groups:
            if len(rows) >= (_FEWEST if cell is not None else 2):
                scale = _scale(name, own[rows], observed[rows])
                yield _statistic(name, cell, own[rows], copies[:, rows], scale)


def _scale(name: str, own: np.ndarray, observed: np.ndarray) -> float:
    """What a departure of this statistic is measured in."""
    if name.startswith("share"):
        return 1.0
    if name == "sd":
        return float(own.mean())
    return float(2 * own.mean()) if name in _SQUARED else float(np.nanstd(observed))


def _statistic(name: str, cell: str | None, observed: np.ndarray, replicated: np.ndarray, scale: float) -> Statistic:
    # The error is that of replicates: what the data deviate by must not excuse itself.
    departure, error = float((observed - replicated.mean(0)).mean()), replicated.mean(1).std()
    sizes = (departure / scale, float(error) / scale) if scale > 0 else (np.inf if departure else 0.0, 0.0)
    return Statistic(name, cell, float(observed.mean()), replicated.mean(1), *sizes, len(observed))


def _of_numbers(kind: str, observed: np.ndarray) -> dict[str, Of]:
    axes = tuple(range(1 - observed.ndim, 0)) if observed.ndim > 1 else ()
    if observed[0].size == 1:
        flat: Of = lambda values: values.reshape(*values.shape[: values.ndim - len(axes)])  # noqa: E731
        centre = float(np.nanmean(observed))
        return {"mean": flat, "squared distance from the mean": lambda values: np.square(flat(values) - centre)}
    found: dict[str, Of] = {
        "mean": lambda values: np.nanmean(values, axis=axes),
        "sd": lambda values: np.nanstd(values, axis=axes),
        "minimum": lambda values: np.nanmin(values, axis=axes),
        "maximum": lambda values: np.nanmax(values, axis=axes),
    }
    return found if kind == "vector" else {**found, "roughness": lambda values: _roughness(values, axes)}


def _roughness(values: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Mean squared difference of neighbours along position, or along height and width."""
    along = axes[:2] if len(axes) > 1 else axes
    steps = [np.nanmean(np.square(np.diff(values, axis=axis)), axis=axes) for axis in along if values.shape[axis] > 1]
    mean: np.ndarray = np.mean(steps, axis=0)
    return mean


def _of_categories(observed: np.ndarray) -> dict[str, Of]:
    axes = tuple(range(1 - observed.ndim, 0)) if observed.ndim > 1 else ()
    codes, counts = np.unique(observed[~np.isnan(observed)], return_counts=True)
    common = codes[np.argsort(-counts)][:_MOST_CODES]
    return {f"share of {code:g}": _share_of(code, axes) for code in np.sort(common)}


def _share_of(code: float, axes: tuple[int, ...]) -> Of:
    return lambda values: np.where(np.isnan(values), np.nan, values == code).mean(axis=axes)


def _pit(replicated: np.ndarray, observed: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """`(rank + 1/2) / (D + 1)` of every element, `[S, *shape]`; NaN where it is missing."""
    below = (replicated < observed).sum(0)
    ties = (replicated == observed).sum(0)
    rank = below + np.floor(generator.random(observed.shape) * (ties + 1))
    pit: np.ndarray = np.where(np.isnan(observed), np.nan, (rank + 0.5) / (len(replicated) + 1))
    return pit


def expected_coverage(level: float, draws: int) -> float:
    """Share of the D + 1 equally probable ranks whose PIT is inside of the central interval."""
    pit = (np.arange(draws + 1) + 0.5) / (draws + 1)
    return float((np.abs(pit - 0.5) <= level / 2).mean())


def _coverage(pit: np.ndarray, draws: int, groups: np.ndarray | None) -> dict[float, tuple[float, float, float]]:
    flat = pit.reshape(len(pit), -1)
    unit = np.arange(len(pit)) if groups is None else np.unique(groups, return_inverse=True)[1]
    count = np.bincount(unit, (~np.isnan(flat)).sum(1))
    found = {}
    for level in LEVELS:
        number = np.bincount(unit, (np.abs(flat - 0.5) <= level / 2).sum(1))
        expected = expected_coverage(level, draws)
        error = np.sqrt(expected * (1 - expected) * _variance_per_unit(number[count > 0], count[count > 0]))
        found[level] = (float(number.sum() / count.sum()), expected, float(error))
    return found


def _variance_per_unit(number: np.ndarray, count: np.ndarray) -> float:
    """Variance of a share over that of one element: 1 / n with the effective number of independent elements.

    Args:
        number: Elements inside, per unit, `[U]`.
        count: Elements, per unit.
    """
    share = number.sum() / count.sum()
    fully_dependent = np.square(count).sum() / count.sum() ** 2
    if not 0 < share < 1 or len(count) < 2:
        return float(fully_dependent)
    between = len(count) / (len(count) - 1) * np.square(number - share * count).sum() / count.sum() ** 2
    return float(min(fully_dependent, between / (share * (1 - share))))


def _histogram(pit: np.ndarray) -> np.ndarray:
    counts = np.histogram(pit[~np.isnan(pit)], bins=_N_BINS, range=(0, 1))[0]
    share: np.ndarray = counts / counts.sum()
    return share


# Posterior predictive checks of all modalities of a run, with verdicts.


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
    numbers = [float(worst.observed), float(worst.replicated.mean())]
    observed, replicated = (format_value(number, 3, abs(numbers[1] - numbers[0])) for number in numbers)
    text = (
        f"{n_off} of {len(checks.statistics)} statistics are off; most: {worst.name} of {where}, data "
        f"{observed}, replicated {replicated} (p = {worst.p_value:.2f})"
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
    by_chance = scipy.stats.norm.isf(_FALSE_ALARM / len(off) / 2)
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
