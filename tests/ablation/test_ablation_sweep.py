"""Ranges of a sweep, and its trials."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from causalpima.inference.ablate import parse
from causalpima.inference.ablation.records import METRICS, Record
from causalpima.inference.ablation.sweep import DEFAULT, Range, corners, opening_values, range_from_text
from causalpima.inference.ablation.table import AblationTable, table_of
from causalpima.inference.ablation.writing import best_sentence, best_words, draw_sweep, is_better
from causalpima.inference.findings.drawing import figure_style
from causalpima.inference.store.files import OutputError

RATE = range_from_text("training.learning_rate=1e-4..1e-2:log")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1e-4..1e-2:log", Range("a", 1e-4, 1e-2, is_log=True)),
        ("a=-1..0.5", Range("a", -1.0, 0.5)),
        ("a=5..40", Range("a", 5.0, 40.0, is_whole=True)),
        ("a=x,y", Range("a", choices=("x", "y"))),
    ],
)
def test_ranges(text: str, expected: Range) -> None:
    assert range_from_text(text) == expected


@pytest.mark.parametrize("text", ["a=2..1", "a=1..1", "a=0..1:log", "a=1..2:", "a=1..2:lin", "a=x..2", "a=1..nan", "a"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^sweep: expected FLAG="):
        range_from_text(text)


def value(flags: Mapping[str, str]) -> float:
    return -((math.log10(float(flags["training.learning_rate"])) + 3) ** 2)


def test_a_sweep_that_is_stopped_ends_as_another(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    from causalpima.inference.ablation.sweep import Sweep

    def go_on(file: Path, until: int) -> Sweep:
        sweep = Sweep(file, [RATE], METRICS["ari"], [0])
        while sweep.n_ended < until:
            numbers = sweep.propose(2)
            cells = sweep.cells()
            for number in numbers:
                sweep.tell(number, value(cells[1 + number].flags))
        return sweep

    whole = go_on(tmp_path / "whole", 12)
    part = go_on(tmp_path / "part", 4)
    part.propose(2)  # under way when it is stopped
    again = go_on(tmp_path / "part", 12)
    assert again.cells() == whole.cells()
    assert again.n_ended == 12
    best = whole.best()
    assert best is not None
    assert best[2] == max(value(cell.flags) for cell in whole.cells()[1:])


def test_a_failed_trial_is_kept_and_is_not_the_best(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    from causalpima.inference.ablation.sweep import Sweep

    sweep = Sweep(tmp_path / "log", [RATE], METRICS["seconds"], [0])
    first, second = sweep.propose(2)
    sweep.tell(first, None)
    assert sweep.best() is None
    sweep.tell(second, 3.0)
    (third,) = sweep.propose(1)
    sweep.tell(third, 2.0)
    best = sweep.best()
    assert best is not None
    assert best[0] == "trial-002"  # fewer seconds are better
    assert len(sweep.cells()) == 4
    assert sweep.cells()[0].flags == {}


def test_another_sweep_in_the_folder_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    from causalpima.inference.ablation.sweep import Sweep

    Sweep(tmp_path / "log", [RATE], METRICS["ari"], [0])
    with pytest.raises(ValueError, match="ranges, the metric and the seeds of the earlier sweep"):
        Sweep(tmp_path / "log", [range_from_text("training.learning_rate=1e-4..1e-1:log")], METRICS["ari"], [0])


def test_a_sweep_with_other_seeds_is_refused_since_trials_would_be_means_over_different_ones(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    from causalpima.inference.ablation.sweep import Sweep

    Sweep(tmp_path / "log", [RATE], METRICS["ari"], [0, 1])
    Sweep(tmp_path / "log", [RATE], METRICS["ari"], [0, 1])
    with pytest.raises(ValueError, match="ranges, the metric and the seeds of the earlier sweep"):
        Sweep(tmp_path / "log", [RATE], METRICS["ari"], [0, 1, 2])


def test_a_sweep_of_an_earlier_version_which_kept_the_first_seed_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    from causalpima.inference.ablation.sweep import Sweep

    earlier = Sweep(tmp_path / "log", [RATE], METRICS["ari"], [3, 4])
    earlier.study.set_user_attr("sweep", json.dumps([[vars(RATE)], "ari", 3]))
    assert Sweep(tmp_path / "log", [RATE], METRICS["ari"], [3, 4]).n_ended == 0


def test_a_metric_without_direction_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    from causalpima.inference.ablation.sweep import Sweep

    with pytest.raises(ValueError, match="metric: expected one that is better one way, got entropy"):
        Sweep(tmp_path / "log", [RATE], METRICS["entropy"], [0])


def sweep_table() -> AblationTable:
    rates = {"trial-000": ("1e-3", 0.5), "trial-001": ("1e-2", 0.8), "trial-002": ("1e-4", None)}
    records = [Record(DEFAULT, 0, "ok", metrics={"ari": 0.6})]
    for cell, (rate, ari) in rates.items():
        flags = {"training.learning_rate": rate, "objective": "paper"}
        records.append(Record(cell, 0, "ok" if ari else "error", flags=flags, metrics={"ari": ari}))
    return table_of(records, [METRICS["ari"]], DEFAULT)


def test_the_figure_shows_every_trial_and_the_best() -> None:
    ranges = [RATE, range_from_text("objective=collapsed,paper")]
    with figure_style():
        rates, choices = draw_sweep(sweep_table(), ranges, METRICS["ari"]).axes
    assert rates.get_xscale() == "log"
    trials, best, default = (np.asarray(line.get_xydata()) for line in rates.lines)
    np.testing.assert_allclose(trials, [[1e-3, 0.5], [1e-2, 0.8]])
    np.testing.assert_allclose(best, [[1e-2, 0.8]])
    np.testing.assert_allclose(default[:, 1], 0.6)
    np.testing.assert_allclose(np.asarray(choices.lines[0].get_xdata()), [1.0, 1.0])


def test_corners_have_the_ends_of_all_ranges() -> None:
    found = corners([range_from_text("a=1..3"), range_from_text("b=0.5..2"), range_from_text("c=x,y")])
    assert len(found) == 8
    assert found[0].flags == {"a": "1", "b": "0.5", "c": "x"}
    assert found[-1].flags == {"a": "3", "b": "2.0", "c": "y"}
    assert len(corners([range_from_text(f"a{i}=1..2") for i in range(20)])) == 16


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    from causalpima.inference.ablation.sweep import Sweep

    (tmp_path / "sweep.log").write_text("garbage\n")
    with pytest.raises(OutputError, match=r"^output_dir: expected a journal of trials, got .*damaged; remove it"):
        Sweep(tmp_path / "sweep.log", [RATE], METRICS["ari"], [0])


@pytest.mark.parametrize("seed", range(5))
def test_four_opening_trials_are_in_the_four_quarters_of_a_range(tmp_path: Path, seed: int) -> None:
    pytest.importorskip("optuna")
    from causalpima.inference.ablation.sweep import Sweep

    sweep = Sweep(tmp_path / "log", [RATE], METRICS["ari"], [seed])
    for number in range(4):
        assert sweep.propose(1) == [number]
        sweep.tell(number, 0.5)
    rates = [float(cell.flags["training.learning_rate"]) for cell in sweep.cells()[1:]]
    assert sorted(int(2 * (math.log10(rate) + 4)) for rate in rates) == [0, 1, 2, 3]


def test_the_estimator_proposes_once_ten_trials_have_a_value(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    from causalpima.inference.ablation.sweep import Sweep

    sweep = Sweep(tmp_path / "log", [RATE], METRICS["ari"], [0])
    for number in range(13):
        sweep.propose(1)
        sweep.tell(number, None if number == 0 else 0.5)
    rates = [float(cell.flags["training.learning_rate"]) for cell in sweep.cells()[1:]]
    halton = [opening_values([RATE], number, 0)["training.learning_rate"] for number in range(13)]
    assert [a == b for a, b in zip(rates, halton, strict=True)] == [True] * 11 + [False] * 2


def test_opening_values_of_whole_numbers_and_choices_are_spread_and_stay_in_range() -> None:
    ranges = [range_from_text("n=1..4"), range_from_text("c=x,y,z"), range_from_text("m=1..100:log")]
    points = [opening_values(ranges, number, 7) for number in range(12)]
    assert sorted(point["n"] for point in points) == sorted([1, 2, 3, 4] * 3)
    assert sorted(point["c"] for point in points) == sorted(["x", "y", "z"] * 4)
    assert all(isinstance(point["m"], int) and 1 <= point["m"] <= 100 for point in points)


def test_no_trial_may_be_better_than_the_default() -> None:
    metric = METRICS["ari"]
    assert best_words("trial-000", 0.5, 0.6, metric).startswith(
        "no trial is better than the default (0.600): trial-000"
    )
    assert best_words("trial-000", 0.7, 0.6, metric) == "trial-000, ari 0.700, the default 0.600"
    assert best_words("trial-000", 0.7, None, metric).endswith("the default has no number")
    assert is_better(0.6, 0.6, metric) is False
    assert is_better(2.0, 3.0, METRICS["seconds"]) is True
    assert is_better(2.0, None, metric) is None


def test_the_page_tells_whether_the_best_trial_is_better() -> None:
    assert (
        best_sentence(sweep_table(), METRICS["ari"])
        == "Sweep: the best trial is trial-001, ari 0.800, the default 0.600."
    )
    records = [Record(DEFAULT, 0, "ok", metrics={"ari": 0.6}), Record("trial-000", 0, "ok", metrics={"ari": 0.5})]
    told = best_sentence(table_of(records, [METRICS["ari"]], DEFAULT), METRICS["ari"])
    assert told is not None
    assert told.startswith("Sweep: no trial is better than the default (0.600): trial-000, ari 0.500")


def test_a_sweep_without_optuna_is_refused_before_there_is_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causalpima.inference.ablation.sweep.find_spec", lambda name: None)
    words = ["--dataset", "circles", "--sweep", "training.epochs=1..3", "--metric", "ari"]
    with pytest.raises(ValueError, match=r"^sweep: expected Optuna, got none; install it with pip install optuna$"):
        parse([*words, "--output_dir", "nowhere"])
