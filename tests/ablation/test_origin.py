"""What stands above every table: the data of all cells, not of the first one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from causalpima.inference.ablation.plan import Cell, Plan, PlannedCell
from causalpima.inference.ablation.records import origin_of
from causalpima.inference.store.files import write_json


def plan(folder: Path, **settings: dict[str, Any]) -> Plan:
    cells = tuple(PlannedCell(Cell(name, {}), (), each) for name, each in settings.items())
    return Plan(folder, cells, (0, 1), next(iter(settings)))


def finish(plan: Plan, cell: int, n_samples: int) -> None:
    folder = plan.fit(plan.cells[cell], 1).folder
    folder.mkdir(parents=True)
    summary = {"status": "diverged", "dataset": "d", "nodes": {}, "modalities": {}, "n_samples": n_samples}
    write_json(folder / "summary.json", summary)


def test_cells_with_the_same_data_are_told_once(tmp_path: Path) -> None:
    same = plan(tmp_path, a={"dataset": "x", "training": {"epochs": 5}}, b={"dataset": "x", "training": {"epochs": 5}})
    finish(same, 0, 91)
    assert origin_of(same) == ("data x", "91 samples", "5 epochs of training at most")


def test_cells_with_other_data_are_told_with_all_of_them(tmp_path: Path) -> None:
    other = plan(
        tmp_path, a={"dataset": "x", "training": {"epochs": 5}}, b={"data": "in/y.nc", "training": {"epochs": 9}}
    )
    assert origin_of(other) == ("data x, y.nc", "5 to 9 epochs of training at most")
    finish(other, 0, 91)
    finish(other, 1, 500)
    assert origin_of(other) == ("data x, y.nc", "91 to 500 samples", "5 to 9 epochs of training at most")
