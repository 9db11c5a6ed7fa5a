"""Whether a folder holds the same ablation."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.ablation.cells import Cell
from inference.ablation.plan import Plan, PlannedCell
from inference.command_line.ablate_arguments import parse
from inference.command_line.ablate_plan import check_unchanged, plan_of


def test_a_finished_fit_that_does_not_say_its_settings_is_refused(tmp_path: Path) -> None:
    plan = Plan(tmp_path, (PlannedCell(Cell("a", {}), (), {"objective": "paper"}),), (0,), "a")
    (tmp_path / "ablation.json").write_text("{}")
    folder = plan.fits[0].folder
    folder.mkdir(parents=True)
    check_unchanged(plan)
    (folder / "summary.json").write_text("{}")
    with pytest.raises(ValueError, match=r"seed-0: expected a run folder with a readable config\.yaml"):
        check_unchanged(plan)


@pytest.mark.parametrize("text", ["nonsense=1..2", "training.epochs=-3..-1", "seed=1..3"])
def test_a_sweep_no_trial_of_which_can_run_is_refused_before_anything_runs(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(sweep: expected values that can run|seed: expected no such flag)"):
        plan_of(parse(["--dataset", "circles", "--output_dir", "out", "--sweep", text]))


def test_a_sweep_is_planned_where_some_of_its_ends_can_run() -> None:
    plan = plan_of(parse(["--dataset", "circles", "--output_dir", "out", "--sweep", "training.epochs=-1..2"]))
    assert plan.names == ("default",)
