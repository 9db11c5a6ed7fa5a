"""Settings that follow others are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from causalpima.inference.ablation.plan import Cell, Plan, PlannedCell, silent_differences


def cell(name: str, flags: dict[str, str], settings: dict[str, Any] | None) -> PlannedCell:
    return PlannedCell(Cell(name, flags), (), settings, None if settings else "refused")


def plan(*cells: PlannedCell) -> Plan:
    return Plan(Path(), cells, (0,), cells[0].cell.name)


USUAL = {"guide": {"fusion": "poe"}, "distillation": {"epochs": 20}, "modality": {"a": {"sizes": [3]}}}


def test_a_default_that_follows_is_told() -> None:
    other = {**USUAL, "guide": {"fusion": "moe"}, "distillation": {"epochs": 0}}
    (told,) = silent_differences(plan(cell("poe", {}, USUAL), cell("moe", {"guide.fusion": "moe"}, other)))
    assert told == "moe also differs from poe by defaults that follow: distillation.epochs 20 -> 0."


def test_what_was_said_is_not_told_again() -> None:
    other = {"guide": {"fusion": "moe"}, "distillation": {"epochs": 0}, "modality": {"a": {"sizes": [4]}}}
    said = {"guide.fusion": "moe", "distillation.epochs": "0", "modality.*.sizes": "4"}
    assert silent_differences(plan(cell("poe", {}, USUAL), cell("moe", said, other))) == ()
    assert silent_differences(plan(cell("poe", {}, USUAL), cell("none", {"guide": "x"}, None))) == ()
    assert silent_differences(plan(cell("refused", {}, None), cell("poe", {}, USUAL))) == ()


def test_a_group_of_every_modality_that_was_said_is_not_told() -> None:
    other = {**USUAL, "modality": {"a": {"sizes": {"x": 4}}}}
    said = {"modality.*.sizes": "{x: 4}"}
    assert silent_differences(plan(cell("usual", {}, USUAL), cell("other", said, other))) == ()


def test_columns_for_scores_are_no_default_and_values_are_as_on_the_command_line() -> None:
    usual = {"labels": None, "sizes": [3], "free": True, "names": []}
    other = {"labels": ["texture", "temper"], "sizes": [[64, 32], ["a"]], "free": False, "names": ["x", {"y": None}]}
    (told,) = silent_differences(plan(cell("usual", {}, usual), cell("other", {"observe": "a=b"}, other)))
    assert told.endswith(": sizes [3] -> [[64,32],[a]], free true -> false, names none -> [x,{y: none}].")
