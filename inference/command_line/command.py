"""A command whose flags and help are the fields and the docstring of a dataclass."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from jsonargparse import ArgumentParser

from causalpima.inference.command_line.files import OUTPUTS, check_places
from causalpima.inference.command_line.parsing import PARSER_MODE, UNPARSABLE, add_code_flag, plain_values, run_command
from causalpima.inference.command_line.words import as_flag, count, in_plain_words, named, whole_number

__all__ = ["Command", "Computing", "Count", "File", "Folder", "Group", "HelpFormatter", "NetcdfFile", "Run", "Seed"]

T = TypeVar("T")

NO_FLAG = {"is_flag": False}
"""Metadata of a field that is no flag."""

Run = Annotated[Path, "RUN"]
File = Annotated[Path, "FILE"]
Folder = Annotated[Path, "FOLDER"]
NetcdfFile = Annotated[Path, partial(named, ending=".nc", form="netCDF"), "FILE.nc"]
Count = Annotated[int, count, "N"]
Seed = Annotated[int, whole_number, "N"]


class Group(NamedTuple):
    """A field that several flags tell together.

    Attributes:
        add: Adds the flags to a parser; their names begin with that of the field and a dot.
        read: From what a parser has under the name of the field to its value.
    """

    add: Callable[[ArgumentParser], None]
    read: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Computing:
    """Where to compute.

    Attributes:
        device: Device of torch, for example cpu or cuda.
        threads: Threads to compute with.
    """

    device: Annotated[str, "NAME"] = "cpu"
    threads: Count = 1


class Command(Generic[T]):
    """A command that is told by a dataclass of options.

    A positional field is a positional argument, a field by keyword is a flag, and without a default it is required;
    what is not given is left to the default. `bool` is a switch, `Literal` a choice, numbers and paths are read as
    such, anything else is text. `Annotated` says more: a function that reads the text or raises ValueError, a name for
    the value, a tuple of choices, keywords of `add_argument` (and `aliases` of the flag), or a `Group`. The docstring
    of the class is the help, its section Attributes that of each flag; what a class inherits stands under a heading,
    the docstring of the class that it is from. `__post_init__` refuses what does not go together.

    `ArgumentParser.add_class_arguments` reads values as YAML: of `--id 7` and `--json null` it makes a number and
    None, and it refuses `--quiet` and `--labels a,b`.

    Args:
        name: Its name.
        options: The dataclass.
        run: Does the work; returns the exit status.
        usage: What follows its name in the usage line; default what is required.
        runs_code: Whether it may run code that a run names, which `--allow_code` permits.
        also_writes: From the options to further files that are written, by the flag that they follow from.
    """

    def __init__(
        self,
        name: str,
        options: type[T],
        run: Callable[[T], int],
        *,
        usage: str | None = None,
        runs_code: bool = False,
        also_writes: Callable[[T], Mapping[str, Path]] = lambda _: {},
    ) -> None:
        self._name, self._options, self._run = name, options, run
        self._runs_code, self._also_writes = runs_code, also_writes
        hints = get_type_hints(options, include_extras=True)
        texts = {key: text for kind in reversed(options.__mro__) for key, text in _sections(kind)[1].items()}
        fields = [field for field in dataclasses.fields(cast(Any, options)) if field.metadata != NO_FLAG]
        self._flags = {field.name: _Flag.of(field, hints[field.name], texts[field.name]) for field in fields}
        needed = " ".join(flag.usage for flag in self._flags.values() if flag.is_needed)
        self._usage = f"python -m inference.{name} {usage or f'{needed} [--FLAG VALUE ...]'}"

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Run the command; returns its exit status."""
        return run_command(self._name, lambda words: self._run(self.parse(words)), argv, "run" in self._flags)

    def parse(self, argv: Sequence[str], others: Sequence[str] = ()) -> T:
        """Parse a command line, and check what it is to write (`check_places`).

        Args:
            argv: The command line.
            others: Words of the command line that another parser reads; what they name is read, too.

        Raises:
            ValueError: It does not parse; the message is one line.
            OutputError: It would write over what is needed.
        """
        found = self._found(argv)
        given = {name: flag.value(found[name]) for name, flag in self._flags.items() if found[name] is not None}
        options = self._options(**given)
        check_places(self._name, [*others, *argv], found, self._also_writes(options))
        return options

    def parser(self) -> ArgumentParser:
        """The parser, whose errors are exceptions."""
        parser = ArgumentParser(
            prog=self._name,
            parser_mode=PARSER_MODE,
            usage=self._usage,
            description=_sections(self._options)[0],
            formatter_class=HelpFormatter,
            exit_on_error=False,
            allow_abbrev=False,
        )
        added: set[str] = set()
        for kind in self._options.__mro__[:-1]:
            heading, texts = _sections(kind)
            new = [name for name in texts if name in self._flags and name not in added]
            added.update(new)
            group = parser if kind is self._options or not new else parser.add_argument_group(heading.removesuffix("."))
            for name in new:
                self._flags[name].add(group)
        if self._flags.keys() & OUTPUTS.keys():
            parser.add_argument("--force", action="store_true", help="Replace a file that this program did not write.")
        if self._runs_code:
            add_code_flag(parser)
        return parser

    def _found(self, argv: Sequence[str]) -> dict[str, Any]:
        parser = self.parser()
        try:
            with plain_values():
                return vars(parser.parse_args(list(argv)))
        except UNPARSABLE as error:
            message = str(error)
            if re.search(r"\b(is|are) required\b", message):
                flag = next(flag for flag in self._flags.values() if re.search(rf"\b{flag.name}\b", message))
                raise ValueError(f"{flag.name}: expected {flag.expected}, got none; {self._usage}") from error
            known = [action.dest for action in parser._actions if action.option_strings]
            raise ValueError(in_plain_words(message, known)) from error


class _Flag(NamedTuple):
    """A field of the options as an argument of a parser."""

    name: str
    kind: Any
    keywords: Mapping[str, Any]
    group: Group | None
    is_positional: bool
    is_needed: bool

    @classmethod
    def of(cls, field: dataclasses.Field[Any], hint: Any, text: str) -> _Flag:
        if get_origin(hint) in (Union, UnionType):
            (hint,) = (part for part in get_args(hint) if part is not type(None))
        kind, *more = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        is_needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if isinstance(field.default, int | float | str) and field.default is not False:
            default = f"{field.default:g}" if isinstance(field.default, float) else field.default
            text = f"{text.removesuffix('.')} (default {default})."
        keywords: dict[str, Any] = {"help": text.replace("%", "%%"), **_READ.get(kind, {"type": str})}
        if get_origin(kind) is Literal:
            keywords = {"help": keywords["help"], "choices": get_args(kind)}
        group = None
        for each in more:
            match each:
                case str():
                    keywords["metavar"] = each
                case dict():
                    keywords |= each
                case Group():
                    group = each
                case tuple():
                    keywords["choices"] = each
                case _:
                    keywords.pop("action", None)
                    keywords["type"] = as_flag(partial(_read, each))
        return cls(field.name, kind, keywords, group, not field.kw_only, is_needed)

    @property
    def usage(self) -> str:
        """What stands for it in a usage line."""
        metavar = str(self.keywords.get("metavar", self.name.upper()))
        return metavar if self.is_positional else f"--{self.name} {metavar}"

    @property
    def expected(self) -> str:
        """How its help begins, as it stands within another."""
        text = re.split(r"[.;:]( |$)", str(self.keywords["help"]))[0]
        return f"the {text[0].lower()}{text[1:]}"

    def add(self, parser: Any) -> None:
        """Add it to a parser or a group of one."""
        if self.group is not None:
            self.group.add(parser)
        elif self.is_positional:
            parser.add_argument(self.name, **self.keywords, **({} if self.is_needed else {"nargs": "?"}))
        else:
            keywords = {**self.keywords, **({"required": True} if self.is_needed else {})}
            parser.add_argument(*(f"--{name}" for name in (self.name, *keywords.pop("aliases", ()))), **keywords)

    def value(self, found: Any) -> Any:
        """What the parser found, as the field has it."""
        if self.group is not None:
            return self.group.read(found)
        return Path(found) if self.kind is Path else tuple(found) if isinstance(found, list) else found


_READ: Mapping[Any, Mapping[str, Any]] = {
    bool: {"action": "store_true"},
    int: {"type": int},
    float: {"type": float},
}


def _read(read: Callable[[Any], Any], value: Any) -> Any:
    """The value of a text; the parser asks a second time with what it was told."""
    return read(value) if isinstance(value, str) else value


def _sections(kind: type) -> tuple[str, dict[str, str]]:
    """What the docstring of a class says of it, and of its attributes."""
    text, _, attributes = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")
    entries = re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", attributes, re.MULTILINE)
    return text.strip(), {name: " ".join(entry.split()) for name, entry in entries}


class HelpFormatter(argparse.HelpFormatter):
    """Keeps paragraphs."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(super(HelpFormatter, self)._fill_text(part, width, indent) for part in text.split("\n\n"))
