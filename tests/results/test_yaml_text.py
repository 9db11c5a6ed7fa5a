"""YAML of settings: a tree of plain values, each as it reads, and nothing that grows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from causalpima.inference.command_line.command import Command
from causalpima.inference.command_line.svi_parser import parse
from causalpima.inference.store.files import to_json
from causalpima.inference.store.yaml_text import YamlError, parse_yaml, read_yaml, to_yaml

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1:30, 010, 1_000, 0x1F, 2024-01-01]", ["1:30", "010", "1_000", "0x1F", "2024-01-01"]),
        ("[yes, no, on, off, y, n]", ["yes", "no", "on", "off", "y", "n"]),
        ("[true, False, null, ~]", [True, False, None, None]),
        ("[3, -3, 0, 1.5, .5, 1e3, 1.0e-05, -.inf]", [3, -3, 0, 1.5, 0.5, 1000.0, 1e-5, float("-inf")]),
        ("on: 1\n2: 3\nnull: 4\n<<: 5", {"on": 1, "2": 3, "null": 4, "<<": 5}),
        ('{"a": [1, {"b": "\\u00e9"}]}', {"a": [1, {"b": "é"}]}),
        ("", None),
    ],
)
def test_values_are_what_they_read_as(text: str, value: Any) -> None:
    assert parse_yaml(text) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BOMB, r"^line 1: .* got an anchor \(&\) or alias \(\*\)$"),
        ("a: 1\nb: *a", r"^line 2: .* alias"),
        ("a: 1\nb:\n  c: 1\n  c: 2", r"^line 4: expected every name once, got 'c' twice$"),
        ("[" * 3000 + "]" * 3000, r"^line 1: "),
        ("{a: " * 60 + "}" * 60, r"^line 1: expected at most 50 levels, got more$"),
        ("a: !!python/object/apply:os.system [x]", r"^line 1: expected plain values, got the tag "),
        ("? [a]\n: 1", r"^line 1: expected a name before the colon"),
        ("a: 1\n---\nb: 2", r"^line 2: but found another document$"),
        ("\ud800", "surrogates"),
        ("a\x00", "control characters"),
    ],
)
def test_what_is_no_tree_of_plain_values(text: str, reason: str) -> None:
    with pytest.raises(YamlError, match=reason) as error:
        parse_yaml(text)
    assert "\n" not in str(error.value)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    value = {"1e3": "1e3", "a": ["1:30", "yes", "010", "1_000", ".5", "null", "", 1e-5, 1e300, None, True, {"b": []}]}
    (tmp_path / "a.yaml").write_text(to_yaml(value))
    assert read_yaml(tmp_path / "a.yaml") == value
    assert parse_yaml(to_json(value)) == value


def test_a_file_of_settings_is_no_larger_than_settings_are(tmp_path: Path) -> None:
    with (tmp_path / "a.yaml").open("wb") as file:
        file.truncate(2**23)
    with pytest.raises(OSError, match="8388608 bytes, more than"):
        read_yaml(tmp_path / "a.yaml")


@pytest.mark.parametrize("words", ["--training.epochs 1:30", "--training.epochs 1_000", "--threads 1:30"])
def test_a_time_of_day_is_no_number_of_a_flag(words: str) -> None:
    with pytest.raises(ValueError, match=r"expected a whole number, got 1"):
        parse(["--dataset", "circles", *words.split()])


def test_a_boolean_may_be_written_as_a_word(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("dataset: circles\nquiet: yes\nindependent_nodes: on\nobserve: {variables: {}}\n")
    found = parse(["--config", str(tmp_path / "a.yaml")])
    assert found.quiet
    assert found.config.independent_nodes


@pytest.mark.parametrize("text", [BOMB, "a: 1\na: 2", "[" * 3000])
def test_a_configuration_file_that_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"^config: expected a readable YAML or JSON file, got .*a.yaml \(line \d+: "):
        parse(["--dataset", "circles", "--config", str(tmp_path / "a.yaml")])


def test_other_users_of_the_parser_keep_their_yaml() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Options:
        """Something.

        Attributes:
            n: A number.
        """

        n: int

    command = Command("x", Options, lambda options: options.n)
    with pytest.raises(ValueError, match="whole number, got 1:30"):
        command.parse(["--n", "1:30"])
    assert command.parser().parse_args(["--n", "1:30"]).n == 90
