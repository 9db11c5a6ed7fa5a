"""Options of a command: from a dataclass to flags, their help, and values."""

from __future__ import annotations

import importlib
from argparse import SUPPRESS
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from causalpima.__main__ import COMMANDS
from causalpima.inference.command_line.command import Command, Computing, Count, File, Run
from causalpima.inference.command_line.words import comma_names
from causalpima.inference.graphs.export import ENDINGS


@dataclass(frozen=True)
class Options(Computing):
    """Do something.

    And more, 100 % of it.

    Attributes:
        run: Folder of a finished run. It is read.
        output: File to write; an older one is
            replaced.
        id: A name.
        names: Some names.
        kind: A kind.
        draws: Draws.
        quiet: Nothing is said.
    """

    run: Run
    _: KW_ONLY
    output: File
    id: str | None = None
    names: Annotated[tuple[str, ...], comma_names, "A,B"] = ()
    kind: Literal["one", "two"] = "one"
    draws: Count = 50
    quiet: bool = False


COMMAND = Command("something", Options, lambda options: options.draws, runs_code=True)
NEEDED = ["r", "--output", "o.json"]


def test_what_is_not_given_is_left_to_the_defaults() -> None:
    assert COMMAND.parse(NEEDED) == Options(Path("r"), output=Path("o.json"))


def test_text_is_text_whatever_yaml_makes_of_it() -> None:
    for text in ("7", "null", "{a: 1}", "yes", "[1", "1:30"):
        assert COMMAND.parse([*NEEDED, "--id", text]).id == text
        assert COMMAND.parse([text, *NEEDED[1:]]).run == Path(text)


def test_values_are_read_by_their_types() -> None:
    found = COMMAND.parse([*NEEDED, "--names", "a, b", "--kind=two", "--draws", "3", "--quiet", "--device", "cuda"])
    assert (found.names, found.kind, found.draws, found.quiet, found.device) == (("a", "b"), "two", 3, True, "cuda")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "run: expected the folder of a finished run, got none; python -m inference.something RUN --output FILE"),
        (["r"], "output: expected the file to write, got none; python -m inference.something RUN --output FILE"),
        ([*NEEDED, "--draws", "0"], "draws: expected a whole number >= 1, got 0"),
        ([*NEEDED, "--names", "a,,b"], "names: expected names with commas between them, each once, got a,,b"),
        ([*NEEDED, "--kind", "three"], "kind: expected one of one, two, got three"),
        ([*NEEDED, "--draw", "1"], "expected a flag that there is, got --draw; did you mean --draws? --help lists all"),
    ],
)
def test_what_does_not_parse_is_told_by_its_flag(words: list[str], line: str) -> None:
    with pytest.raises(ValueError, match="expected") as error:
        COMMAND.parse(words)
    assert str(error.value).removesuffix(" [--FLAG VALUE ...]") == line


def test_the_docstring_is_the_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = COMMAND.parser().format_help()
    assert "Do something.\n\nAnd more, 100 % of it.\n" in text
    for part in ("File to write; an older one is replaced.", "Draws (default 50).", "A kind (default one).", "--force"):
        assert part in text
    assert text.index("--allow_code") < text.index("Where to compute:") < text.index("--device NAME")


def parser_of(command: str) -> Any:
    return importlib.import_module(f"causalpima.inference.{command}").COMMAND.parser()


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "svi"])
def test_every_help_fits_two_screens_with_at_most_ten_common_flags(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parser = parser_of(command)
    assert parser.format_help().count("\n") <= 60
    shown = {action.dest for action in parser._optionals._group_actions if action.help != SUPPRESS}
    common = shown - {"help", "force", "allow_code"}
    assert len(common) <= 10


def test_the_help_of_export_names_all_endings() -> None:
    text = parser_of("export").format_help()
    assert [ending for ending in ENDINGS if ending not in text] == []
