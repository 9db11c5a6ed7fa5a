"""Whether a folder holds the same ablation."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.ablation.cells import Cell
from inference.ablation.plan import Plan, PlannedCell
from inference.command_line.ablate_arguments import parse
from inference.command_line.ablate_plan import check_unchanged, plan_of
from inference.command_line.ablate_refusals import other_baseline


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
    with pytest.raises(
        ValueError,
        match=r"^(sweep: expected values that can run|sweep: .*=1 that is none|seed: expected no such flag)",
    ):
        plan_of(parse(["--dataset", "circles", "--output_dir", "out", "--sweep", text]))


def test_a_sweep_is_planned_where_some_of_its_ends_can_run() -> None:
    plan = plan_of(parse(["--dataset", "circles", "--output_dir", "out", "--sweep", "training.epochs=-1..2"]))
    assert plan.names == ("default",)


def test_a_misspelled_flag_in_a_file_names_the_arm_and_the_file(tmp_path: Path) -> None:
    arms = tmp_path / "arms.yaml"
    arms.write_text("plain: {}\nno rate: {training.learning_rate: -1}\nshort: {training.epoch: 5}\n")
    words = ["--dataset", "circles", "--output_dir", "out", "--arms", str(arms)]
    with pytest.raises(ValueError, match=rf"^arms: {arms}: .* got one in short that is none; .*--training.epoch;"):
        plan_of(parse(words))
    arms.write_text("plain: {}\nno rate: {training.learning_rate: -1}\n")
    assert [planned.refusal is None for planned in plan_of(parse(words)).cells] == [True, False]


def test_where_no_arm_can_run_every_reason_is_told_with_its_arm(tmp_path: Path) -> None:
    arms = tmp_path / "arms.yaml"
    arms.write_text("a: {training.learning_rate: -1}\nb: {training.epochs: -1}\nc: {training.epochs: -1}\n")
    with pytest.raises(ValueError, match=rf"^arms: {arms}: .*; a: training.learning_rate: .* \| b: training.epochs: "):
        plan_of(parse(["--dataset", "circles", "--output_dir", "out", "--arms", str(arms)]))


def test_a_refused_first_cell_that_is_no_baseline_is_warned_of() -> None:
    words = ["--dataset", "circles", "--output_dir", "out", "--vary", "training.epochs=-1,1,2"]
    arguments = parse(words)
    plan = plan_of(arguments)
    warning = other_baseline(arguments, plan.cells, plan.baseline)
    assert warning is not None
    assert warning.startswith("training.epochs=-1 is refused, so differences are from training.epochs=1")
    named = parse([*words, "--baseline", "training.epochs=1"])
    assert other_baseline(named, plan.cells, plan.baseline) is None
    able = parse([*words[:-1], "training.epochs=1,2"])
    assert other_baseline(able, plan_of(able).cells, "training.epochs=1") is None
