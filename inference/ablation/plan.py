"""What an ablation runs: every cell with every seed, in folders of their own; what cannot run, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.ablation.assignments import (
    OF_ONE_FIT,
    OF_THE_ABLATION,
    as_words,
    is_for_all_modalities,
    refuse_flag,
    spread_over_modalities,
)
from inference.ablation.cells import Cell

__all__ = ["Check", "Fit", "NoSettingError", "Plan", "PlannedCell", "planned"]

Check = Callable[[Sequence[str]], Mapping[str, Any]]
"""From words of `inference.svi` to all settings of the fit.

It raises ValueError where these do not go together, and `NoSettingError` where one of them is no setting of any fit.
"""


class NoSettingError(ValueError):
    """A misspelled flag or a value that no fit takes: nothing that can be compared, and no outcome of an ablation.

    Attributes:
        cell: Name of the cell that has it.
    """

    cell: str = ""


@dataclass(frozen=True)
class Fit:
    """One cell with one seed.

    Attributes:
        cell: Name of the cell.
        seed: Seed of the fit, and of the data where these are generated.
        words: Words for `inference.svi`, without the folder.
        folder: Run folder.
    """

    cell: str
    seed: int
    words: tuple[str, ...]
    folder: Path

    @property
    def log(self) -> Path:
        """What the fit prints."""
        return self.folder.with_name(f"{self.folder.name}.log")


@dataclass(frozen=True)
class PlannedCell:
    """A cell, and whether it may run.

    Attributes:
        cell: The cell.
        words: Words for `inference.svi`, without seed and folder.
        settings: All settings of its fits, with the first seed; None where they are refused.
        refusal: Why they are refused, or None.
    """

    cell: Cell
    words: tuple[str, ...]
    settings: Mapping[str, Any] | None
    refusal: str | None = None

    @property
    def n_modalities(self) -> int:
        """Number of modalities of its data; 0 of a refused cell."""
        return len((self.settings or {}).get("modality", {}))


@dataclass(frozen=True)
class Plan:
    """All cells and seeds.

    Attributes:
        folder: Folder of the ablation.
        cells: The cells, those that are refused, too.
        seeds: Seeds, the same for every cell: differences are paired by them.
        baseline: Name of the cell that the others are compared with.
    """

    folder: Path
    cells: tuple[PlannedCell, ...]
    seeds: tuple[int, ...]
    baseline: str

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all cells, in order."""
        return tuple(planned.cell.name for planned in self.cells)

    @property
    def fits(self) -> tuple[Fit, ...]:
        """All fits that may run, seed by seed: an ablation that is stopped early has the same seeds of all cells."""
        able = [planned for planned in self.cells if planned.refusal is None]
        return tuple(self.fit(planned, seed) for seed in self.seeds for planned in able)

    def fit(self, planned: PlannedCell, seed: int) -> Fit:
        """The fit of a cell with a seed."""
        folder = self.folder / "runs" / planned.cell.folder / f"seed-{seed}"
        return Fit(planned.cell.name, seed, (*planned.words, f"--seed={seed}"), folder)


def planned(
    cells: Sequence[Cell], common: Sequence[str], together: Mapping[str, str], first_seed: int, check: Check
) -> tuple[PlannedCell, ...]:
    """The cells with all their settings; those that are refused with the reason.

    Args:
        cells: The cells.
        common: Words of `inference.svi` that hold for all cells: they name the data.
        together: Settings of all cells, by flag; those of a cell go over them.
        first_seed: Seed for the check.
        check: Finds the settings.

    Raises:
        ValueError: Two cells have one name, or a flag is no setting of a fit.
        NoSettingError: A flag that there is not, or a value that is none of its flag.
    """
    for name in dict.fromkeys(name for flags in (together, *(cell.flags for cell in cells)) for name in flags):
        if name in OF_ONE_FIT or name in OF_THE_ABLATION:
            refuse_flag(name)
    names = [cell.name for cell in cells]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"vary: expected cells with different names, got two of {twice}; rename an arm")
    words = (*common, f"--seed={first_seed}")
    return tuple(_planned(cell, words, {**together, **cell.flags}, check) for cell in cells)


def _planned(cell: Cell, common: Sequence[str], flags: Mapping[str, str], check: Check) -> PlannedCell:
    try:
        words = as_words(spread_over_modalities(flags, _modalities(common, flags, check)).items())
        settings = check([*common, *words])
    except NoSettingError as error:
        error.cell = cell.name
        raise
    except ValueError as error:
        return PlannedCell(cell, (), None, " ".join(str(error).split()))
    return PlannedCell(cell, (*common[:-1], *words, *_one_at_a_time(settings)), settings)


def _modalities(common: Sequence[str], flags: Mapping[str, str], check: Check) -> tuple[str, ...]:
    """Words of the modalities of the data, where a flag is for all of them."""
    single = {name: value for name, value in flags.items() if not is_for_all_modalities(name)}
    return () if len(single) == len(flags) else tuple(check([*common, *as_words(single.items())])["modality"])


def _one_at_a_time(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Several starts of one fit run one after the other: the processes are those of the ablation."""
    is_free = settings.get("restarts", 1) > 1 and settings.get("restart_mode") != "batched" and "jobs" not in settings
    return ("--jobs=1",) if is_free else ()
