"""Flags with pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from causalpima.inference.command_line.svi_parser import parse, parse_settings
from causalpima.inference.command_line.words import pairs_from_text, with_pairs


def test_pairs() -> None:
    assert pairs_from_text("--read_outs", "image=moments, curve=mine:peaks") == {
        "image": "moments",
        "curve": "mine:peaks",
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("image", "expected pairs"),
        ("=a", "expected pairs"),
        ("a=", "expected pairs"),
        ("a=b,a=c", "expected every name once"),
    ],
)
def test_anything_else_is_refused(value: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^read_outs: {message}"):
        pairs_from_text("--read_outs", value)


def test_other_words_stay() -> None:
    words = ["--seed", "3", '--read_outs={"a": "b"}', "--nodes", "a=2"]
    assert with_pairs(words) == words
    assert with_pairs(["--read_outs"]) == ["--read_outs"]


def test_a_command_line() -> None:
    words = ["--dataset", "circles_environments", "--environments.kind", "do", "--environments.targets", "do(hue)=N1"]
    config = parse(words).config
    assert config.environments.kind == "do"
    assert config.environments.targets == {"do(hue)": "N1"}
    assert parse(["--dataset", "circles", "--read_outs=image=moments"]).config.read_outs == {"image": "moments"}
    assert parse(["--dataset", "circles", "--independent_nodes", "true"]).config.independent_nodes


def test_settings_of_a_run_come_back() -> None:
    words = ["--dataset", "circles", "--read_outs", "image=moments"]
    arguments = parse(words)
    assert parse_settings(arguments.to_config()).config == arguments.config


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--environments.kind", "soft"], "environments.kind: expected do, or soft beside a mask"),
        (["--environments.targets", "a=N1"], "environments.targets: expected none unless"),
        (
            ["--environments.kind", "do", "--environments.targets", "a=N9"],
            "environments.targets: expected nodes of --nod",
        ),
        (["--read_outs", "image=moments", "--independent_nodes", "true"], "independent_nodes: expected no other side"),
    ],
)
def test_side_information_that_is_no_use_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}") as error:
        parse(["--dataset", "circles", *words])
    assert "\n" not in str(error.value)


def test_environments_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "ovens.npz"
    rng = np.random.default_rng(0)
    np.savez(file, x=rng.random((40, 3)), oven=np.array(["none", "hot"] * 20), bench=np.arange(40) % 2)
    words = ["--data", str(file), "--nodes", "heat=2", "--environment", "oven", "--observational", "none"]
    arguments = parse([*words, "--environments.kind", "do", "--environments.targets", "hot=heat"])
    data = arguments.make_data()
    assert data.environment_names == ("none", "hot")
    assert sorted(data.modalities) == ["bench", "x"]
    again = parse_settings(arguments.to_config())
    assert again.config == arguments.config
    assert again.make_data().environment_names == ("none", "hot")
