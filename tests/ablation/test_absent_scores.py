"""Fits that are finished but not scored are told, by cell and seed."""

from __future__ import annotations

from pathlib import Path

from causalpima.inference.ablation.plan import Cell, Plan, PlannedCell
from causalpima.inference.ablation.records import absent_scores
from causalpima.inference.store.files import write_json


def test_only_finished_fits_that_are_to_be_scored_are_told(tmp_path: Path) -> None:
    cells = tuple(PlannedCell(Cell(name, {}), (), {}) for name in ("lost", "scored", "diverged", "apart", "unfinished"))
    plan = Plan(tmp_path, cells, (3, 5), "lost")
    for fit in plan.fits:
        fit.folder.mkdir(parents=True)
        if fit.cell != "unfinished":
            write_json(fit.folder / "summary.json", {})
        if fit.cell not in ("diverged", "unfinished"):
            (fit.folder / "posterior.nc").touch()
        if fit.cell == "scored":
            write_json(fit.folder / "evaluate.json", {})
    (told,) = absent_scores(plan, {"lost", "scored", "diverged", "unfinished"})
    assert told.startswith("lost, seed 3, 5: finished, but not scored by inference.evaluate")
