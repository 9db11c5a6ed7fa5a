"""A learner after the fit that did not run is told, by cell, seed and reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from causalpima.inference.ablation.plan import Cell, Plan, PlannedCell
from causalpima.inference.ablation.records import absent_learners
from causalpima.inference.store.files import write_json

LEFT_OUT = {"posthoc_left_out": {"method": "ges", "reason": "the nodes have no names"}}
FOUND = {"posthoc": {"method": "ges"}}


def finish(plan: Plan, cell: int, seed: int, graph: dict[str, Any] | None) -> None:
    folder = plan.fit(plan.cells[cell], seed).folder
    folder.mkdir(parents=True)
    common = {"status": "ok", "dataset": "d", "nodes": {"N1": 2}, "modalities": {}, "clusters": {}, "graph": graph}
    diverged = {"status": "diverged", "dataset": "d", "nodes": {"N1": 2}, "modalities": {}}
    write_json(folder / "summary.json", diverged if graph is None else common)


def test_it_is_told_of_finished_fits_alone_and_seeds_are_joined(tmp_path: Path) -> None:
    cells = tuple(PlannedCell(Cell(name, {}), (), {}) for name in ("unnamed", "named", "diverged", "unfinished"))
    plan = Plan(tmp_path, cells, (3, 5), "named")
    for seed in plan.seeds:
        finish(plan, 0, seed, LEFT_OUT)
        finish(plan, 1, seed, FOUND)
        finish(plan, 2, seed, None)
    assert absent_learners(plan) == ("unnamed, seed 3, 5: GES after the fit did not run: the nodes have no names.",)
