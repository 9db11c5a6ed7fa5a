"""Whether a folder holds the same ablation."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.ablation.cells import Cell
from inference.ablation.plan import Plan, PlannedCell
from inference.command_line.ablate_plan import check_unchanged


def test_a_finished_fit_that_does_not_say_its_settings_is_refused(tmp_path: Path) -> None:
    plan = Plan(tmp_path, (PlannedCell(Cell("a", {}), (), {"objective": "paper"}),), (0,), "a")
    (tmp_path / "ablation.json").write_text("{}")
    folder = plan.fits[0].folder
    folder.mkdir(parents=True)
    check_unchanged(plan)
    (folder / "summary.json").write_text("{}")
    with pytest.raises(ValueError, match=r"seed-0: expected a run folder with a readable config\.yaml"):
        check_unchanged(plan)
