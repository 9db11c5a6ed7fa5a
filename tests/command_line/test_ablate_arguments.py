"""Arguments of `python -m inference.ablate`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from causalpima.inference.ablate import parse
from causalpima.inference.ablation.records import DEFAULT_METRICS
from causalpima.inference.command_line.ablate_plan import split_words

BASE = ["--dataset", "circles", "--output_dir", "out", "--vary", "objective=collapsed,meanfield"]


def test_flags_of_fits_are_handed_on_as_they_are() -> None:
    found = parse([*BASE, "--mask", "image=N1", "b=N2", "--jobs", "2", "--training.epochs", "-3", "--observe=hue"])
    assert found.common == (
        "--dataset",
        "circles",
        "--mask",
        "image=N1",
        "b=N2",
        "--training.epochs",
        "-3",
        "--observe=hue",
    )
    assert (found.jobs, found.output_dir) == (2, Path("out"))


def test_several_values_may_follow_a_flag() -> None:
    found = parse([*BASE, "model.covariance=full,diagonal", "--set", "a=1", "b=x=y", "--set=c=2"])
    assert [name for name, _ in found.vary] == ["objective", "model.covariance"]
    assert found.together == {"a": "1", "b": "x=y", "c": "2"}


@pytest.mark.parametrize(
    ("text", "seeds"), [("3", (0, 1, 2)), ("3,5", (3, 5)), ("7,", (7,)), ("4..6", (4, 5, 6)), ("1", (0,))]
)
def test_seeds(text: str, seeds: tuple[int, ...]) -> None:
    assert parse([*BASE, "--seeds", text]).seeds == seeds


@pytest.mark.parametrize("text", ["0", "x", "1,1", "5..3", "-2", ",", "99999999999", "0..99999999999999999999"])
def test_what_are_no_seeds_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^seeds: expected how many seeds"):
        parse([*BASE, f"--seeds={text}"])


def test_metrics() -> None:
    assert tuple(metric.name for metric in parse(BASE).compared()) == DEFAULT_METRICS
    found = parse([*BASE, "--metrics", "nmi,ari", "summary.epochs"])
    assert [metric.name for metric in found.compared()] == ["nmi", "ari", "summary.epochs"]


def test_a_sweep_has_a_metric_that_is_shown() -> None:
    found = parse(["--output_dir", "out", "--sweep", "a=1..2", "b=x,y", "--metrics", "nmi", "--trials", "3"])
    assert [found.flag for found in found.sweep] == ["a", "b"]
    assert [metric.name for metric in found.compared()] == ["held_out_log_likelihood", "nmi"]
    assert (found.trials, found.goal()) == (3, found.compared()[0])
    assert parse(BASE).goal() is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seed", "3"], "seed: expected no such flag, since there are several fits; give --seeds"),
        (["--resume=x"], "resume: expected no such flag"),
        (["--trials", "3"], "trials: expected it with --sweep"),
        (["--sweep", "a=1..2"], "vary: expected no other cells beside those of a sweep"),
        (["--metrics", "x"], "metrics: expected cluster_accuracy"),
        (["--jobs", "0"], "jobs"),
        (["--vary", "x"], "vary: expected FLAG=VALUE"),
        (["--json", "nowhere/at/all.json"], "json: expected a file in a folder"),
        (["--quiet", "yes"], "yes"),
    ],
)
def test_bad_arguments_are_refused_by_name(words: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse([*BASE, *words])


def test_a_folder_is_asked_for() -> None:
    with pytest.raises(ValueError, match="output_dir: expected the folder for the ablation, got none"):
        parse(BASE[:2])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sweep", "a=1..2", "a=3..4"], "sweep: expected every flag once, got a, a"),
        (["--sweep", "a=1..2", "--metric", "entropy"], "metric: expected one that is better one way, got entropy"),
    ],
)
def test_sweeps_that_say_too_much_or_too_little_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(["--dataset", "circles", "--output_dir", "out", *words])


def test_the_help_has_all_flags_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"])
    told = capsys.readouterr().out
    page = (Path(__file__).parents[2] / "docs" / "ablate.md").read_text(encoding="utf-8")
    flags = set(re.findall(r"^\| `(--\w+)", page, re.MULTILINE)) | {"--threads"}
    assert len(flags) > 8
    assert [flag for flag in flags if flag not in told] == []
    assert "--threads" not in split_words(["--threads", "2"])[0]


def test_metrics_that_are_asked_for_are_known() -> None:
    asked = parse([*BASE, "--metrics", "nmi,-summary.epochs"]).asked()
    assert [metric.name for metric in asked] == ["nmi", "summary.epochs"]
    assert parse(BASE).asked() == []
