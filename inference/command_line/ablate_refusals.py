"""What is said where cells of an ablation cannot run: whose fault it is, the cell, and the file that it stands in."""

from __future__ import annotations

from collections.abc import Sequence

from inference.ablation.cells import Cell
from inference.ablation.plan import Check, NoSettingError, PlannedCell, planned
from inference.command_line.ablate_arguments import Arguments

__all__ = ["cannot_begin", "no_setting", "none_can_run", "other_baseline"]

_MOST_REASONS = 3


def no_setting(arguments: Arguments, error: NoSettingError, check: Check) -> ValueError:
    """A misspelled flag or value: of a cell, with its name; of all fits, as `inference.svi` says it.

    Args:
        arguments: The command line.
        error: What is said of the first cell that has it.
        check: From words to settings.
    """
    if _refusal_of_all(arguments, check) == str(error):
        return ValueError(str(error))
    return ValueError(
        f"{_source(arguments)}: expected settings of inference.svi, got one in {error.cell} that is none; {error}"
    )


def cannot_begin(arguments: Arguments, cell: str, error: ValueError) -> ValueError:
    """The data or the user's own code are found not to suit a cell when its fit begins.

    Args:
        arguments: The command line.
        cell: Name of the cell.
        error: What its fit says.
    """
    return ValueError(f"{_source(arguments)}: expected fits that can begin, got one of {cell} that cannot; {error}")


def none_can_run(arguments: Arguments, cells: Sequence[PlannedCell], check: Check) -> ValueError:
    """No cell can run: the reason that holds for all settings, or else the different ones with their cells.

    Args:
        arguments: The command line.
        cells: The cells, all of them refused.
        check: From words to settings.
    """
    of_all = _refusal_of_all(arguments, check)
    if of_all is not None and all(planned.refusal == of_all for planned in cells):
        return ValueError(of_all)
    reasons: dict[str, str] = {}
    for planned_cell in cells:
        reasons.setdefault(planned_cell.refusal or "", planned_cell.cell.name)
    told = [f"{name}: {reason}" for reason, name in reasons.items()][:_MOST_REASONS]
    more = [f"{len(reasons) - len(told)} more reasons"] if len(reasons) > len(told) else []
    return ValueError(f"{_source(arguments)}: expected a cell that can run, got none; {' | '.join([*told, *more])}")


def other_baseline(arguments: Arguments, cells: Sequence[PlannedCell], baseline: str) -> str | None:
    """A warning where the first cell cannot be the baseline, and nobody said which one is; else None.

    Args:
        arguments: The command line.
        cells: All cells.
        baseline: Name of the one that is the baseline instead.
    """
    first = cells[0]
    if arguments.baseline is not None or first.refusal is None:
        return None
    return (
        f"{first.cell.name} is refused, so differences are from {baseline}, the first cell that can run; "
        "name another with --baseline"
    )


def _refusal_of_all(arguments: Arguments, check: Check) -> str | None:
    """Why the settings that all cells share are refused on their own, or None."""
    try:
        (found,) = planned([Cell("", {})], arguments.common, arguments.together, arguments.seeds[0], check)
    except NoSettingError as error:
        return str(error)
    return found.refusal


def _source(arguments: Arguments) -> str:
    """Where the cells come from."""
    if arguments.arms is not None:
        return f"arms: {arguments.arms}"
    return "sweep" if arguments.sweep else "vary"
