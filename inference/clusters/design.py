"""What randomisation identifies: how every modality differs between the outcomes of a designed node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

from causalpima.inference.data.multimodal import MultimodalData

if TYPE_CHECKING:
    from causalpima.models.batch import Standardisation

__all__ = [
    "N_PERMUTATIONS",
    "DesignedEffect",
    "DesignedNode",
    "Differences",
    "OutcomeMeans",
    "Permutation",
    "Reader",
    "designed_effect",
    "differences",
    "outcome_means",
    "permutation_test",
]


# Means of a modality for every outcome of a node, with standard errors that count groups, not samples.
#
# With $\bar x_o$ the mean over the $n_o$ measured samples of outcome o, $u_{go}$ the sum of $x - \bar x_o$ over those
# of
# group g, and $G_o$ the number of groups that have some,
#
# $$\mathrm{Cov}(\bar x_o, \bar x_p) = \sum_g a_{go} a_{gp}, \qquad
# a_{go} = \sqrt{\frac{G_o}{G_o - 1}} \frac{u_{go}}{n_o}$$
#
# (Liang and Zeger 1986, with the correction for few groups). Where every sample is its own group, the standard error is
# $s / \sqrt{n_o}$; groups with samples of two outcomes enter the difference of these as pairs.


Reader = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From positions of samples to their values, float64 `[b, E]`, and which of these were measured, bool `[b, E]`."""

_ROWS_AT_ONCE = 1024
_LEVEL = 0.975


class OutcomeMeans(NamedTuple):
    """Per outcome and element, `[outcome, E]`; NaN where nothing says it.

    Attributes:
        samples: Number of measured samples.
        units: Number of groups among them.
        mean: Their mean.
        variance: Square of its standard error.
        covariance: Covariance of the mean with that of the first outcome.
        within: Σ (x - mean)² over the samples.
        is_shared: Whether some group has samples of two outcomes.
    """

    samples: np.ndarray
    units: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    covariance: np.ndarray
    within: np.ndarray
    is_shared: bool

    @property
    def explained(self) -> float:
        """Share of the variance between outcomes, over all elements together: the correlation ratio R²."""
        there = self.samples > 0
        mean, total = np.where(there, self.mean, 0.0), self.samples.sum(0)
        centre = (self.samples * mean).sum(0) / np.maximum(total, 1)
        between = (self.samples * np.square(mean - centre)).sum()
        whole = between + self.within.sum()
        return float(between / whole) if whole > 0 else 0.0


class Differences(NamedTuple):
    """Every outcome minus the first, `[outcome - 1, E]`, with 95 % intervals element by element.

    Attributes:
        value: The difference of the means.
        standard_error: Of it.
        lower: Lower end.
        upper: Upper end.
        standardised: Root mean square of the differences over the elements, in pooled standard deviations within the
            outcomes, `[outcome - 1]`.
    """

    value: np.ndarray
    standard_error: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    standardised: np.ndarray


def outcome_means(read: Reader, codes: np.ndarray, units: np.ndarray, n_outcomes: int) -> OutcomeMeans:
    """Means and their covariances, in two passes over the samples, some at a time.

    Args:
        read: Values of samples.
        codes: Outcome of each sample, `[n]`.
        units: Group of each sample, `[n]`.
        n_outcomes: Number of outcomes.
    """
    count, mean = _means(read, codes, n_outcomes)
    n_units, square, product, within = (np.zeros_like(mean) for _ in range(4))
    for rows in _whole_units(units):
        values, measured = read(rows)
        starts = np.flatnonzero(np.r_[True, np.diff(units[rows]) != 0])
        residuals = [np.where(measured & (codes[rows] == o)[:, None], values - mean[o], 0.0) for o in range(n_outcomes)]
        sums = [np.add.reduceat(residual, starts) for residual in residuals]
        for o, (residual, total) in enumerate(zip(residuals, sums, strict=True)):
            n_units[o] += np.logical_or.reduceat(measured & (codes[rows] == o)[:, None], starts).sum(0)
            square[o] += np.square(total).sum(0)
            product[o] += (total * sums[0]).sum(0)
            within[o] += np.square(residual).sum(0)
    scale = _scale(count, n_units)
    return OutcomeMeans(
        count, n_units, mean, square * scale**2, product * scale * scale[:1], within, _is_shared(codes, units)
    )


def differences(means: OutcomeMeans) -> Differences:
    """Differences to the first outcome.

    Intervals are those of Student's t with the degrees of freedom of Welch and Satterthwaite; where groups have samples
    of both outcomes, those of the smaller number of groups.
    """
    value = means.mean[1:] - means.mean[:1]
    error = np.sqrt(np.maximum(means.variance[1:] + means.variance[:1] - 2 * means.covariance[1:], 0.0))
    half = scipy.stats.t.ppf(_LEVEL, _degrees_of_freedom(means)) * error
    return Differences(value, error, value - half, value + half, _standardised(means, value))


def _means(read: Reader, codes: np.ndarray, n_outcomes: int) -> tuple[np.ndarray, np.ndarray]:
    count: np.ndarray | float = 0.0
    total: np.ndarray | float = 0.0
    for start in range(0, len(codes), _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, len(codes)))
        values, measured = read(rows)
        member = np.eye(n_outcomes)[codes[rows]].T
        count, total = count + member @ measured, total + member @ np.where(measured, values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(count), np.asarray(total / count)


def _whole_units(units: np.ndarray) -> Iterator[np.ndarray]:
    """Positions of samples, group by group, no group cut in two."""
    order = np.argsort(units, kind="stable")
    ends = np.r_[np.flatnonzero(np.diff(units[order])) + 1, len(order)]
    start = 0
    while start < len(order):
        within_reach = ends[(ends > start) & (ends <= start + _ROWS_AT_ONCE)]
        end = int(within_reach[-1] if len(within_reach) else ends[ends > start][0])
        yield order[start:end]
        start = end


def _scale(count: np.ndarray, units: np.ndarray) -> np.ndarray:
    """√(G / (G - 1)) / n; NaN where there are fewer than two groups, which have no scatter between them."""
    enough = units > 1
    return np.where(enough, np.sqrt(units / np.where(enough, units - 1, 1.0)) / np.maximum(count, 1.0), np.nan)


def _is_shared(codes: np.ndarray, units: np.ndarray) -> bool:
    pairs = np.unique(np.stack([units, codes], axis=1), axis=0)
    return len(pairs) > len(np.unique(units))


def _degrees_of_freedom(means: OutcomeMeans) -> np.ndarray:
    first, others = means.variance[:1], means.variance[1:]
    each = means.units - 1
    if means.is_shared:
        return np.minimum(each[:1], each[1:])
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.square(first + others) / (np.square(first) / each[:1] + np.square(others) / each[1:])
    # Without scatter the interval has no width, whatever the degrees of freedom.
    return np.where(first + others > 0, found, np.minimum(each[:1], each[1:]))


def _standardised(means: OutcomeMeans, value: np.ndarray) -> np.ndarray:
    left = means.samples.sum(0) - (means.samples > 0).sum(0)
    variance = means.within.sum(0) / np.maximum(left, 1)
    known = np.isfinite(value) & (left > 0)
    spread = np.where(known, variance, 0.0).sum(1)
    squares = np.where(known, np.square(value), 0.0).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.sqrt(squares / spread))


# Whether outcomes that were handed out at random could explain as much: a permutation test of R².


N_PERMUTATIONS = 999
_MOST_VALUES = 10**6
_FEWEST_ELEMENTS = 16
_AT_ONCE = 64
_TIE = 1e-9


class Permutation(NamedTuple):
    """A permutation test.

    Attributes:
        p_value: (1 + permutations that explain as much) / (1 + permutations).
        n_permutations: How many were drawn.
        n_elements: On how many elements of the modality R² was compared, spread evenly over those measured.
    """

    p_value: float
    n_permutations: int
    n_elements: int


class _Sums(NamedTuple):
    """What is exchanged: groups as wholes, or samples within their groups.

    Attributes:
        total: Sum of the values, `[U, E]`.
        present: Measured samples, `[U, E]`.
        codes: Outcome, `[U]`.
        blocks: Within which outcomes are exchanged, `[U]`.
    """

    total: np.ndarray
    present: np.ndarray
    codes: np.ndarray
    blocks: np.ndarray


def permutation_test(
    read: Reader, codes: np.ndarray, units: np.ndarray, n_outcomes: int, generator: np.random.Generator
) -> Permutation:
    """Compare R² with that of outcomes that were handed out anew.

    Groups whose samples have one outcome each exchange it as wholes; where groups have samples of several outcomes,
    samples exchange them within their groups. This is the distribution under randomisation if the design drew
    outcomes like that.

    Args:
        read: Values of samples.
        codes: Outcome of each sample, `[n]`.
        units: Group of each sample, `[n]`.
        n_outcomes: Number of outcomes.
        generator: Source of the permutations.
    """
    sums = _sums(read, codes, units)
    member = np.eye(n_outcomes)
    observed = _between(sums, member[sums.codes].T[None])[0]
    as_much = 0
    for start in range(0, N_PERMUTATIONS, _AT_ONCE):
        drawn = [_exchanged(sums, generator) for _ in range(min(_AT_ONCE, N_PERMUTATIONS - start))]
        found = _between(sums, member[np.stack(drawn)].swapaxes(1, 2))
        as_much += int((found >= observed * (1 - _TIE)).sum())
    return Permutation((1 + as_much) / (1 + N_PERMUTATIONS), N_PERMUTATIONS, sums.total.shape[1])


def _sums(read: Reader, codes: np.ndarray, units: np.ndarray) -> _Sums:
    """Centred values of some elements, summed over what is exchanged."""
    pairs = np.unique(np.stack([units, codes], axis=1), axis=0)
    are_whole = len(pairs) == len(np.unique(units))
    own = np.unique(units, return_inverse=True)[1].reshape(-1) if are_whole else np.arange(len(codes))
    elements = _elements(read, len(codes), own.max() + 1)
    values, measured = _read_all(read, len(codes), elements)
    count = measured.sum(0)
    values = np.where(measured, values - values.sum(0, where=measured) / np.maximum(count, 1), 0.0)
    n_units = own.max() + 1
    total, present = (np.zeros((n_units, len(elements))) for _ in range(2))
    np.add.at(total, own, values)
    np.add.at(present, own, measured)
    first = np.unique(own, return_index=True)[1]
    blocks = np.zeros(n_units, dtype=int) if are_whole else units
    return _Sums(total, present, codes[first], blocks)


def _elements(read: Reader, n_samples: int, n_units: int) -> np.ndarray:
    """Elements that some sample has, evenly spread where they are many."""
    parts = [read(rows)[1].any(0) for rows in _blocks(n_samples)]
    there, most = np.flatnonzero(np.any(parts, axis=0)), max(_FEWEST_ELEMENTS, _MOST_VALUES // n_units)
    return there if len(there) <= most else there[np.linspace(0, len(there) - 1, most).round().astype(int)]


def _read_all(read: Reader, n_samples: int, elements: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    parts = [tuple(part[:, elements] for part in read(rows)) for rows in _blocks(n_samples)]
    values, measured = (np.concatenate(part) for part in zip(*parts, strict=True))
    return values, measured


def _blocks(n_samples: int) -> Iterator[np.ndarray]:
    return (np.arange(start, min(start + _AT_ONCE, n_samples)) for start in range(0, n_samples, _AT_ONCE))


def _exchanged(sums: _Sums, generator: np.random.Generator) -> np.ndarray:
    """Codes in a random order within each block."""
    order = np.lexsort((generator.random(len(sums.codes)), sums.blocks))
    codes = np.empty_like(sums.codes)
    codes[np.argsort(sums.blocks, kind="stable")] = sums.codes[order]
    return codes


def _between(sums: _Sums, member: np.ndarray) -> np.ndarray:
    """Sum of squares between outcomes over all elements, `[T]`: of one and the same total, it orders as R² does.

    Args:
        sums: Of centred values: their totals are 0.
        member: `[T, outcome, U]` of 0 and 1.
    """
    total, count = member @ sums.total, member @ sums.present
    found: np.ndarray = (np.square(total) / np.where(count > 0, count, 1.0)).sum((1, 2))
    return found


@dataclass(frozen=True)
class DesignedEffect:
    """A modality by the outcomes of a designed node; C outcomes. NaN where nothing was measured.

    Attributes:
        samples: Samples with the modality, by outcome, `[C]`.
        units: Groups among them, `[C]`; samples where there are no groups.
        mean: In the units of the data, `[C, *shape]`; of categories their shares, `[C, *shape, category]`.
        standard_error: Of the mean, `[C, *shape]`.
        difference: Each outcome but the first minus the first, `[C - 1, *shape]`.
        lower: Lower ends of 95 % intervals, element by element.
        upper: Upper ends.
        standardised: Root mean square of the differences over the elements, in pooled standard deviations within the
            outcomes, on the scale of the model, `[C - 1]`. Without an effect it is not 0, but about √(1/n_o + 1/n_1).
        explained: Share of the variance between the outcomes, on the scale of the model.
        test: Whether outcomes handed out anew would explain as much.
    """

    samples: np.ndarray
    units: np.ndarray
    mean: np.ndarray
    standard_error: np.ndarray
    difference: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    standardised: np.ndarray
    explained: float
    test: Permutation


@dataclass(frozen=True)
class DesignedNode:
    """A node that the experimenter set.

    Attributes:
        variable: The variable that holds its outcomes; None: it is not observed, and has no effects here.
        outcomes: Names of its outcomes.
        n_labelled: Samples whose outcome is known, of
        n_training: the training samples without other interventions.
        n_groups: Groups among those whose outcome is known; None without groups.
        effects: By modality.
    """

    variable: str | None
    outcomes: tuple[str, ...]
    n_labelled: int
    n_training: int
    n_groups: int | None = None
    effects: Mapping[str, DesignedEffect] = field(default_factory=dict)


def designed_effect(
    data: MultimodalData,
    name: str,
    rows: np.ndarray,
    codes: np.ndarray,
    n_outcomes: int,
    standardisation: Standardisation,
    seed: int,
    is_categorical: bool = False,
) -> DesignedEffect | None:
    """Differences in means: with randomisation, the average effect over all else as it is in these samples.

    Args:
        data: All samples.
        name: The modality.
        rows: Positions of the samples that count.
        codes: Outcome of each of these, `[m]`.
        n_outcomes: Number of outcomes.
        standardisation: From the units of the data to the scale of the model.
        seed: Of the permutations.
        is_categorical: Values are codes of categories.

    Returns:
        The effect; None where fewer than two outcomes have samples with the modality.
    """
    there = data.present[name][rows]
    rows, codes = rows[there], codes[there]
    if len(np.unique(codes)) < 2:
        return None
    units = np.arange(len(rows)) if data.groups is None else data.groups[rows]
    read = _categories(data, name, rows) if is_categorical else _values(data, name, rows)
    scaled = read if is_categorical else _scaled(read, standardisation)
    found = outcome_means(read, codes, units, n_outcomes)
    on_scale = outcome_means(scaled, codes, units, n_outcomes)
    test = permutation_test(scaled, codes, units, n_outcomes, np.random.default_rng((seed, n_outcomes)))
    return _effect(found, on_scale, test, _counts(codes, units, n_outcomes), _shape(data, name, found))


def _effect(
    found: OutcomeMeans, on_scale: OutcomeMeans, test: Permutation, counts: np.ndarray, shape: Sequence[int]
) -> DesignedEffect:
    changes, (samples, units) = differences(found), counts

    def shaped(values: np.ndarray) -> np.ndarray:
        return values.reshape(len(values), *shape)

    return DesignedEffect(
        samples=samples,
        units=units,
        mean=shaped(found.mean),
        standard_error=shaped(np.sqrt(found.variance)),
        difference=shaped(changes.value),
        lower=shaped(changes.lower),
        upper=shaped(changes.upper),
        standardised=differences(on_scale).standardised,
        explained=on_scale.explained,
        test=test,
    )


def _counts(codes: np.ndarray, units: np.ndarray, n_outcomes: int) -> np.ndarray:
    """Samples and groups by outcome, `[2, C]`."""
    pairs = np.unique(np.stack([codes, units], axis=1), axis=0)
    return np.stack([np.bincount(part, minlength=n_outcomes) for part in (codes, pairs[:, 0])])


def _shape(data: MultimodalData, name: str, found: OutcomeMeans) -> tuple[int, ...]:
    shape = data.modalities[name].shape[1:]
    n_elements = int(np.prod(shape))
    return shape if found.mean.shape[1] == n_elements else (*shape, found.mean.shape[1] // n_elements)


def _values(data: MultimodalData, name: str, rows: np.ndarray) -> Reader:
    """Positions increase, as arrays on disk want it."""

    def read(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        wanted, back = np.unique(rows[positions], return_inverse=True)
        values = np.asarray(data.modalities[name][wanted], dtype=np.float64)
        measured = np.asarray(data.measured_rows(name, wanted))
        return values.reshape(len(wanted), -1)[back], measured.reshape(len(wanted), -1)[back]

    return read


def _scaled(read: Reader, standardisation: Standardisation) -> Reader:
    def scaled(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, measured = read(positions)
        return standardisation.apply(np.where(measured, values, 1.0)), measured

    return scaled


def _categories(data: MultimodalData, name: str, rows: np.ndarray) -> Reader:
    """Indicators of the categories, in the place of codes."""
    read = _values(data, name, rows)
    parts = (read(np.arange(start, min(start + 1024, len(rows))))[0].max() for start in range(0, len(rows), 1024))
    n_categories = 1 + int(max(parts))

    def indicators(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, measured = read(positions)
        one_hot = np.eye(n_categories)[values.astype(int)]
        return one_hot.reshape(len(values), -1), np.repeat(measured, n_categories, axis=1)

    return indicators
