"""What randomisation identifies: how every modality differs between the outcomes of a designed node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from inference.data.multimodal import MultimodalData
from inference.design.outcome_means import OutcomeMeans, Reader, differences, outcome_means
from inference.design.permutation import Permutation, permutation_test

if TYPE_CHECKING:
    from models.standardisation import Standardisation

__all__ = ["DesignedEffect", "DesignedNode", "designed_effect"]


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
