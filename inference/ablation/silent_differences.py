"""Settings in which a cell differs from the baseline although nobody said so: defaults that follow another setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from inference.ablation.plan import Plan, PlannedCell

__all__ = ["silent_differences"]

_FOR_SCORES = ("labels",)
"""Columns that scores are taken against: they follow `observe`, and change no fit."""


def silent_differences(plan: Plan) -> tuple[str, ...]:
    """A sentence per cell that has such settings.

    Args:
        plan: The plan, with all settings of every cell.
    """
    baseline = next((planned for planned in plan.cells if planned.cell.name == plan.baseline), None)
    if baseline is None or baseline.settings is None:
        return ()
    return tuple(_sentences(plan, baseline))


def _sentences(plan: Plan, baseline: PlannedCell) -> Iterator[str]:
    usual = dict(_leaves("", baseline.settings))
    for planned in plan.cells:
        if planned.settings is None:
            continue
        own = dict(_leaves("", planned.settings))
        said = (*planned.cell.flags, *baseline.cell.flags)
        changed = [name for name in {**usual, **own} if usual.get(name) != own.get(name) and name not in _FOR_SCORES]
        names = [name for name in changed if not _is_said(name, said)]
        if names:
            told = ", ".join(f"{name} {_shown(usual.get(name))} -> {_shown(own.get(name))}" for name in names)
            yield f"{planned.cell.name} also differs from {plan.baseline} by defaults that follow: {told}."


def _is_said(name: str, flags: tuple[str, ...]) -> bool:
    """A flag is said itself, or a group that it is in, `modality.*.decoder` of every modality, too."""
    return any(fnmatchcase(name, flag) or fnmatchcase(name, f"{flag}.*") for flag in flags)


def _leaves(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, entry in value.items():
            yield from _leaves(f"{prefix}.{key}" if prefix else str(key), entry)
    else:
        yield prefix, value


def _shown(value: Any) -> str:
    """As on the command line: `[64,32]`, `true`; what is empty is none."""
    if value is None or value in ([], {}, ()):
        return "none"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}: {_shown(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_shown, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
