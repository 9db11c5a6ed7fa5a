"""From the arguments of an ablation to its plan, and whether a folder holds the same one."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from inference.ablation.arms import read_arms
from inference.ablation.cells import Cell, cells_of
from inference.ablation.own_code import check_code
from inference.ablation.plan import Fit, NoSettingError, Plan, PlannedCell, planned
from inference.ablation.sweep import DEFAULT, corners
from inference.command_line.ablate_arguments import Arguments
from inference.command_line.ablate_components import unknown_component
from inference.command_line.ablate_refusals import no_setting, none_can_run
from inference.command_line.svi_arguments import UnparsableError, parse_settings
from inference.command_line.svi_arguments import parse as parse_fit
from inference.results.files import OutputError
from inference.results.run_folder import RunFolder
from inference.results.strict_json import to_json
from inference.training.own_code import own_names
from models.user_code import on_word_of_files

__all__ = ["check_unchanged", "plan_of", "plan_of_cells", "settings_of"]

Settings = Mapping[str, Any]

# How the starts of a fit run is settled when it begins, and changes no result.
_NO_SETTINGS = ("jobs", "restart_mode")


def settings_of(words: Sequence[str]) -> Settings:
    """All settings of a fit, as its `config.yaml` has them.

    Raises:
        ValueError: They do not go together.
        NoSettingError: One of them is none.
    """
    try:
        plain: Settings = json.loads(to_json(parse_fit(words).to_config()))
    except UnparsableError as error:
        raise NoSettingError(str(error)) from error
    except ValueError as error:
        unknown = unknown_component(words)
        if unknown is not None:
            raise NoSettingError(unknown) from error
        raise
    return plain


def plan_of(arguments: Arguments) -> Plan:
    """The cells with their settings, or the reason why they are refused.

    Raises:
        ValueError: There is nothing that could run, the baseline can't, or a cell has what is no setting.
    """
    if arguments.sweep:
        _check_trials(arguments)
        return plan_of_cells(arguments, [Cell(DEFAULT, {})])
    arms = () if arguments.arms is None else read_arms(arguments.arms)
    return plan_of_cells(arguments, cells_of(arms, arguments.grid))


def plan_of_cells(arguments: Arguments, cells: Sequence[Cell]) -> Plan:
    """The same of given cells."""
    found = _planned(arguments, cells)
    return Plan(arguments.output_dir, found, arguments.seeds, _baseline(arguments, found))


def _planned(arguments: Arguments, cells: Sequence[Cell]) -> tuple[PlannedCell, ...]:
    try:
        return planned(cells, arguments.common, arguments.together, arguments.seeds[0], settings_of)
    except NoSettingError as error:
        raise no_setting(arguments, error, settings_of) from error


def _check_trials(arguments: Arguments) -> None:
    """Refuse a sweep no trial of which can run, before the default is fitted."""
    refusal = None
    for corner in corners(arguments.sweep):
        (found,) = _planned(arguments, [corner])
        if found.refusal is None:
            return
        refusal = found.refusal
    raise ValueError(f"sweep: expected values that can run, got none; {refusal}")


def _baseline(arguments: Arguments, cells: Sequence[PlannedCell]) -> str:
    name = arguments.baseline
    names = [planned.cell.name for planned in cells]
    able = [planned.cell.name for planned in cells if planned.refusal is None]
    if not able:
        raise none_can_run(arguments, cells, settings_of)
    if name is not None and name not in names:
        raise ValueError(f"baseline: expected one of {' | '.join(names)}, got {name!r}; name one of them")
    if name is not None and name not in able:
        raise ValueError(f"baseline: expected a cell that can run, got {name}; {cells[names.index(name)].refusal}")
    return able[0] if name is None else name


def check_unchanged(plan: Plan) -> None:
    """Refuse a folder with fits of other settings or code under the same names, and one that holds something else.

    More cells and more seeds are no change; settings that are new in the program count with their defaults.

    Raises:
        OutputError: Such a folder.
    """
    there = plan.folder.is_dir() and any(plan.folder.iterdir())
    if there and not (plan.folder / "ablation.json").is_file():
        raise OutputError(
            f"output_dir: expected a new folder or that of an ablation, got {plan.folder} with other files; "
            "name another"
        )
    settings = {planned.cell.name: planned.settings or {} for planned in plan.cells}
    for fit in plan.fits:
        folder = RunFolder(fit.folder)
        if folder.config.is_file() or folder.is_complete:
            _check_fit(fit, {**settings[fit.cell], "seed": fit.seed})
    check_code(plan)


def _check_fit(fit: Fit, now: Settings) -> None:
    before = RunFolder(fit.folder).read_config()
    flag = None if before == now else _difference(_settings_again(before, own_names(now).values()), now)
    if flag is not None:
        raise OutputError(
            f"output_dir: expected the settings of the earlier fits in {fit.folder}, got others for {flag}; "
            "name another folder for another ablation"
        )


def _settings_again(settings: Settings, typed: Collection[str]) -> Settings:
    """Settings of an earlier version with the defaults of what is new; no other code is imported than was typed."""
    with on_word_of_files(allowed=False, typed=[name.partition(":")[0] for name in typed]):
        plain: Settings = json.loads(to_json(parse_settings(settings).to_config()))
    return plain


def _difference(one: Settings, other: Settings, prefix: str = "") -> str | None:
    """Name of the first setting that differs."""
    for name in dict.fromkeys([*one, *other]):
        a, b = one.get(name), other.get(name)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            inner = _difference(a, b, f"{prefix}{name}.")
            if inner is not None:
                return inner
        elif a != b and name not in _NO_SETTINGS:
            return f"{prefix}{name}"
    return None
