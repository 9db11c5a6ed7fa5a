"""Whether a folder holds the same ablation."""

from __future__ import annotations

from pathlib import Path

import pytest

from causalpima.inference.ablate import parse, time_lines
from causalpima.inference.ablation.plan import Cell, Plan, PlannedCell
from causalpima.inference.command_line.ablate_plan import check_unchanged, other_baseline, plan_of, unknown_component


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


@pytest.mark.parametrize(
    ("flag", "value", "legal"),
    [
        ("guide.fusion", "nonsense", "poe"),
        ("model.prior", "dagg", "mixture"),
        ("model.graph", "posthoc:nonsense", "posthoc:pc"),
        ("modality.image.encoder.kind", "mpl", "mlp"),
        ("modality.*.decoder.kind", "nonsense", "mlp"),
    ],
)
def test_a_component_that_there_is_not_is_a_mistake_and_no_refused_cell(flag: str, value: str, legal: str) -> None:
    words = ["--dataset", "circles", "--output_dir", "out", "--vary", f"{flag}={legal},{value}"]
    told = flag.replace("*", "image").replace(".", r"\.")
    with pytest.raises(ValueError, match=rf"^vary: .* got one in .*={value} that is none; {told}: .* got {value}"):
        plan_of(parse(words))
    with pytest.raises(ValueError, match=rf"^{told}: .* got {value}"):
        plan_of(parse([*words[:-1], "training.epochs=1,2", f"--set={flag}={value}"]))


def test_a_legal_value_that_does_not_go_with_others_is_a_refused_cell() -> None:
    words = ["--dataset", "circles", "--output_dir", "out", "--vary", "model.prior=dag,standard", ""]
    plan = plan_of(parse([*words[:-1], "mixture.updates=em,gradient"]))
    assert [planned.refusal is None for planned in plan.cells] == [True, True, True, False]
    assert (plan.cells[-1].refusal or "").startswith("mixture.updates: ")


@pytest.mark.parametrize(
    "word",
    ["--model.graph=fixed:graph.yaml", "--guide.fusion=mine:Own", "--training.epochs=5", "--dataset", "--nodes=2,2"],
)
def test_what_may_be_there_is_left_to_the_fit(word: str) -> None:
    assert unknown_component([word]) is None


def test_a_dry_run_names_the_cell_whose_own_component_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_fusion.py").write_text("def fusion(*given):\n    return 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    arms = tmp_path / "arms.yaml"
    arms.write_text("plain: {}\nmine: {guide.fusion: 'broken_fusion:fusion'}\n")
    sizes = ["--dataset_options.n_samples", "40", "--training.epochs", "1", "--pretraining.kind", "none"]
    arguments = parse(["--dataset", "circles", *sizes, "--output_dir", str(tmp_path / "out"), "--arms", str(arms)])
    with pytest.raises(ValueError, match=rf"^arms: {arms}: expected fits that can begin, got one of mine .*Fusion"):
        time_lines(plan_of(arguments), arguments)
