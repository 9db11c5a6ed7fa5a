"""A sweep by Optuna: every trial is a cell, its value the mean of a metric over the seeds.

Trials are kept in a journal, so that a sweep that was stopped goes on: trials that were under way are finished first.
The first trials fill the ranges (`opening_trials`); then the tree-structured Parzen estimator proposes values (Bergstra
et al. 2011).
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy

from causalpima.inference.ablation.plan import Cell, assignment, varied
from causalpima.inference.ablation.records import Metric
from causalpima.inference.store.files import OutputError

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

__all__ = [
    "DEFAULT",
    "Range",
    "Sweep",
    "cell_name",
    "check_direction",
    "check_optuna",
    "corners",
    "opening_values",
    "range_from_text",
]


# `FLAG=1e-4..1e-2:log`: the values among which a sweep searches.


_EXAMPLE = "for example training.learning_rate=1e-4..1e-2:log, training.epochs=5..40 or objective=collapsed,meanfield"


@dataclass(frozen=True)
class Range:
    """Values of a flag.

    Attributes:
        flag: The flag of `inference.svi`.
        low: Lowest value.
        high: Highest value.
        is_log: Whether orders of magnitude count, not differences.
        is_whole: Whether values are whole numbers.
        choices: The values themselves, where they are no interval; then the others say nothing.
    """

    flag: str
    low: float = 0.0
    high: float = 0.0
    is_log: bool = False
    is_whole: bool = False
    choices: tuple[str, ...] = ()

    @property
    def ends(self) -> tuple[str, ...]:
        """The lowest and the highest value, or the choices, as on a command line."""
        number = int if self.is_whole else float
        return self.choices or (str(number(self.low)), str(number(self.high)))

    def distribution(self) -> BaseDistribution:
        """The same for Optuna."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.choices:
            return CategoricalDistribution(self.choices)
        if self.is_whole:
            return IntDistribution(int(self.low), int(self.high), log=self.is_log)
        return FloatDistribution(self.low, self.high, log=self.is_log)


def range_from_text(text: str) -> Range:
    """The range of `FLAG=LOW..HIGH`, `FLAG=LOW..HIGH:log` or `FLAG=A,B`.

    Whole numbers at both ends make whole numbers.

    Raises:
        ValueError: It is none.

    >>> range_from_text("training.epochs=5..40")
    Range(flag='training.epochs', low=5.0, high=40.0, is_log=False, is_whole=True, choices=())
    """
    flag, value = assignment(text, "sweep")
    if ".." not in value:
        flag, choices = varied(text)
        return Range(flag, choices=choices)
    bounds, colon, scale = value.partition(":")
    low, _, high = bounds.partition("..")
    try:
        found = Range(flag, float(low), float(high), scale == "log", _is_whole(low) and _is_whole(high))
    except ValueError as error:
        raise _refusal(text) from error
    if not _is_usable(found) or scale not in ("log", "") or bool(colon) != bool(scale):
        raise _refusal(text)
    return found


def _is_whole(text: str) -> bool:
    return text.strip().lstrip("+-").isdigit()


def _is_usable(found: Range) -> bool:
    """An interval that is not empty; orders of magnitude are of positive numbers."""
    is_interval = math.isfinite(found.low) and math.isfinite(found.high) and found.low < found.high
    return is_interval and (found.low > 0 or not found.is_log)


def _refusal(text: str) -> ValueError:
    return ValueError(f"sweep: expected FLAG=LOW..HIGH, perhaps with :log, got {text!r}; {_EXAMPLE}")


# The opening trials of a sweep fill its ranges: the estimator knows nothing before them.
#
# Trial n has the point n of a Halton sequence (Halton 1960; scrambled as by Owen 2017) that the seed scrambles, so that
# it depends on the seed and n alone: any first trials are spread over every range.


def opening_values(ranges: Sequence[Range], number: int, seed: int) -> dict[str, float | int | str]:
    """Values of the trial of a number, by flag.

    Args:
        ranges: What is searched; range i has coordinate i of the sequence.
        number: Number of the trial, from zero.
        seed: Seed of the scrambling.
    """
    sequence = scipy.stats.qmc.Halton(len(ranges), seed=np.random.default_rng(seed))
    sequence.fast_forward(number)
    return {found.flag: _value(found, float(u)) for found, u in zip(ranges, sequence.random(1)[0], strict=True)}


def _value(found: Range, u: float) -> float | int | str:
    """The value at a share u of the range, 0 <= u < 1: of whole numbers and choices every one has its own part."""
    if found.choices:
        return found.choices[int(u * len(found.choices))]
    if found.is_whole:
        value = round(_between(found.low - 0.5, found.high + 0.5, u, found.is_log))
        return min(max(value, int(found.low)), int(found.high))
    return min(max(_between(found.low, found.high, u, found.is_log), found.low), found.high)


def _between(low: float, high: float, u: float, is_log: bool) -> float:
    return math.exp(_between(math.log(low), math.log(high), u, False)) if is_log else low + u * (high - low)


DEFAULT = "default"
"""Name of the cell without any of the settings that are searched."""

_MOST_CORNERS = 16
_N_OPENING = 10
"""Trials with a value before the estimator proposes: the `n_startup_trials` of Optuna's sampler."""


class Sweep:
    """The trials of a sweep.

    Args:
        file: The journal; it goes on where there is one.
        ranges: What is searched.
        metric: What is to be good.
        seeds: Seeds of every trial, whose mean is its value; the first is that of the proposals, too.

    Raises:
        ValueError: Optuna is not installed, or nobody can say which way the metric is better.
        OutputError: The journal is of another sweep, or is damaged.
    """

    def __init__(self, file: Path, ranges: Sequence[Range], metric: Metric, seeds: Sequence[int]) -> None:
        check_direction(metric)
        self.ranges, self.metric, self._seeds, self._seed = tuple(ranges), metric, list(seeds), seeds[0]
        self.study = _study(file, metric.better > 0)
        self._check_same(file)

    def _check_same(self, file: Path) -> None:
        searched = [[vars(found) for found in self.ranges], self.metric.name]
        now, of_earlier_version = (json.dumps([*searched, seeds]) for seeds in (self._seeds, self._seed))
        before = self.study.user_attrs.get("sweep")
        if before is None:
            self.study.set_user_attr("sweep", now)
        elif before not in (now, of_earlier_version):
            raise OutputError(
                f"output_dir: expected the ranges, the metric and the seeds of the earlier sweep in {file.parent}, got "
                "others; name another folder for another sweep"
            )

    @property
    def n_ended(self) -> int:
        """Number of trials that have a value or failed."""
        return sum(trial.state.is_finished() for trial in self.study.get_trials(deepcopy=False))

    def cells(self) -> tuple[Cell, ...]:
        """The default, and all trials that were begun, in order."""
        return (Cell(DEFAULT, {}), *map(_cell, self.study.get_trials(deepcopy=False)))

    def propose(self, n_most: int) -> list[int]:
        """Numbers of the next trials: those under way, else up to `n_most` new ones.

        Proposals depend on the trials before them and the seed, so that a sweep that was stopped ends as another.
        """
        trials = self.study.get_trials(deepcopy=False)
        open_ones = [trial.number for trial in trials if not trial.state.is_finished()]
        if open_ones:
            return open_ones
        is_opening = sum(trial.value is not None for trial in trials) < _N_OPENING
        begin = self._begin_opening if is_opening else self._begin_estimated
        numbers = list(range(len(trials), len(trials) + n_most))
        for number in numbers:
            begin(number)
        return numbers

    def _begin_opening(self, number: int) -> None:
        from optuna.trial import TrialState, create_trial

        distributions = {found.flag: found.distribution() for found in self.ranges}
        values = opening_values(self.ranges, number, self._seed)
        self.study.add_trial(create_trial(state=TrialState.RUNNING, params=values, distributions=distributions))

    def _begin_estimated(self, number: int) -> None:
        """Each trial has a seed of its own; a sum of seed and number would be shared by sweeps of other seeds."""
        from optuna.samplers import TPESampler

        seed = int(np.random.SeedSequence([self._seed, number]).generate_state(1)[0])
        self.study.sampler = TPESampler(n_startup_trials=_N_OPENING, seed=seed, constant_liar=True)
        self.study.ask({found.flag: found.distribution() for found in self.ranges})

    def tell(self, number: int, value: float | None) -> None:
        """The mean of the metric of a trial; None: a fit of it has none, and it failed."""
        from optuna.trial import TrialState

        if value is None:
            self.study.tell(number, state=TrialState.FAIL)
        else:
            self.study.tell(number, value)

    def best(self) -> tuple[str, Mapping[str, str], float] | None:
        """Name, settings and value of the best trial; None where every one failed."""
        ended = [trial for trial in self.study.get_trials(deepcopy=False) if trial.value is not None]
        if not ended:
            return None
        best = max(ended, key=lambda trial: self.metric.better * float(trial.value or 0.0))
        cell = _cell(best)
        return cell.name, cell.flags, float(best.value or 0.0)


def check_optuna() -> None:
    """Refuse a sweep where Optuna is not installed.

    Raises:
        ValueError: It is not.
    """
    if find_spec("optuna") is None:
        raise ValueError("sweep: expected Optuna, got none; install it with pip install optuna")


def check_direction(metric: Metric) -> None:
    """Refuse a metric of which nobody can say which way it is better.

    Raises:
        ValueError: Such a metric.
    """
    if not metric.better:
        raise ValueError(f"metric: expected one that is better one way, got {metric.name}; put + or - before a path")


def corners(ranges: Sequence[Range]) -> tuple[Cell, ...]:
    """Some cells at the ends of all ranges: where none of them can run, no trial is likely to.

    Args:
        ranges: What is searched.
    """
    ends = [[(found.flag, text) for text in found.ends] for found in ranges]
    points = itertools.islice(itertools.product(*ends), _MOST_CORNERS)
    return tuple(Cell(",".join(map("=".join, point)), dict(point)) for point in points)


def cell_name(number: int) -> str:
    """Name of the cell of a trial."""
    return f"trial-{number:03d}"


def _cell(trial: FrozenTrial) -> Cell:
    return Cell(cell_name(trial.number), {flag: str(value) for flag, value in trial.params.items()})


def _study(file: Path, is_maximised: bool) -> Study:
    check_optuna()
    import optuna
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    direction = optuna.study.StudyDirection.MAXIMIZE if is_maximised else optuna.study.StudyDirection.MINIMIZE
    try:
        storage = optuna.storages.JournalStorage(JournalFileBackend(str(file)))
        return optuna.create_study(storage=storage, study_name="sweep", direction=direction, load_if_exists=True)
    except (ValueError, KeyError, TypeError) as error:
        raise OutputError(
            f"output_dir: expected a journal of trials, got {file}, which is damaged; remove it, and the sweep begins "
            "again with the fits that are there"
        ) from error
