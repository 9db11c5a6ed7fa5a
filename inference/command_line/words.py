"""Errors of the argument parser in the words of someone who does not program."""

from __future__ import annotations

import difflib
import json
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Collection, Sequence
from typing import Any

__all__ = [
    "FlagError",
    "as_flag",
    "choices_in_words",
    "comma_names",
    "count",
    "in_plain_words",
    "named",
    "pairs_from_text",
    "positive_number",
    "probability",
    "whole_number",
    "with_pairs",
]


_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "tuple": "whole numbers with commas between them",
    "NoneType": "null",
}
_MOST_SUGGESTIONS = 3
_MOST_CHOICES = 12


def in_plain_words(message: str, flags: Collection[str]) -> str:
    """One line that names the setting: `training.epochs: expected a whole number, got x`.

    Args:
        message: What the parser said; unknown forms are only put on one line.
        flags: All flags that there are, for suggestions in the place of an unknown one.
    """
    line = " ".join(message.split())
    if match := re.match(r"unrecognized arguments: (.*)", line):
        return _unknown_flag(match[1].split()[0], flags)
    if match := re.match(r"(?:Option|Group) '(.*?)' (?:is not accepted|does not accept option '(.*?)')", line):
        return _unknown_setting(".".join(part for part in match.groups() if part), flags)
    return _about_a_value(line)


def _unknown_flag(word: str, flags: Collection[str]) -> str:
    name = word.partition("=")[0]
    if not name.startswith("-"):
        return f"expected flags, which begin with --, got {word}; --help lists them"
    return f"expected a flag that there is, got {name}; {_suggest(name.lstrip('-'), flags, '--')}--help lists all"


def _unknown_setting(name: str, flags: Collection[str]) -> str:
    return f"config: expected settings that there are, got {name}; {_suggest(name, flags, '')}--print_config shows all"


def _suggest(name: str, flags: Collection[str], prefix: str) -> str:
    """`did you mean ...?`, of the flags that end alike and those that look alike; empty where there are none."""
    alike = [flag for flag in flags if flag.rpartition(".")[2] == name.rpartition(".")[2]]
    alike += [flag for flag in difflib.get_close_matches(name, flags, cutoff=0.8) if flag not in alike]
    return f"did you mean {', '.join(prefix + flag for flag in alike[:_MOST_SUGGESTIONS])}? " if alike else ""


def _about_a_value(line: str) -> str:
    for form, words in _FORMS:
        if match := re.match(form, line):
            return words(*match.groups())
    return line


def _kind(annotation: str) -> str:
    """`<class 'int'>`, `typing.Literal['a', 'b']` in words."""
    if match := re.search(r"Literal\[(.*)\]", annotation):
        return f"one of {_unquoted(match[1])}"
    name = re.sub(r"<class '(.*)'>", r"\1", annotation)
    return _TYPES.get(name, name)


def _either(annotations: str) -> str:
    return " or ".join(dict.fromkeys(_kind(part) for part in annotations.split(", ")))


def choices_in_words(choices: Sequence[str]) -> str:
    """`a, b, c`; of many, without the variants `a_x` of others, which are counted."""
    bases = [name for name in choices if not any(name.startswith(f"{other}_") for other in choices)]
    if len(choices) <= _MOST_CHOICES or len(bases) == len(choices):
        return ", ".join(choices)
    return f"{', '.join(bases)} or {len(choices) - len(bases)} variants that python -m inference.svi --help_all lists"


def _not_a_choice(name: str, value: str, choices: str) -> str:
    names = choices.split(", ")
    alike = difflib.get_close_matches(value, names, _MOST_SUGGESTIONS, cutoff=0.8)
    suggestion = f"; did you mean {', '.join(alike)}?" if alike else ""
    return f"{name}: expected one of {choices_in_words(names)}, got {value}{suggestion}"


def _unquoted(text: str) -> str:
    return text.replace("'", "")


_FORMS: Sequence[tuple[str, Callable[..., str]]] = (
    (
        r'Parser key "(.*?)": Expected an? (.*?)\. Got value: (.*)',
        lambda name, kind, value: f"{name}: expected {_kind(kind)}, got {value}",
    ),
    (
        r'Parser key "(.*?)": Does not validate .*Subtypes: \[(.*?)\] Errors: .*Given value: (.*)',
        lambda name, kinds, value: f"{name}: expected {_either(kinds)}, got {value}",
    ),
    (
        r"argument --(\S+): invalid choice: (.*?) \(choose from (.*)\)",
        lambda *parts: _not_a_choice(*map(_unquoted, parts)),
    ),
    (
        r'Parser key "(.*?)": (.*) not among choices \[(.*)\]',
        lambda *parts: _not_a_choice(*map(_unquoted, parts)),
    ),
    (
        r"argument --(\S+): expected one argument",
        lambda name: f"{name}: expected a value after --{name}, got none",
    ),
    (
        r"argument --(\S+): ignored explicit argument '(.*)'",
        lambda name, value: f"{name}: expected no value after --{name}, got {value}; leave it out",
    ),
    (
        r"Parser key \"(.*?)\": Unable to load config '?(.*?)'? - ",
        lambda name, value: (
            f"{name}: expected a readable file of settings, got {value}; --{name}.NAME sets one of them"
        ),
    ),
    (
        r'(?:argument --(\S+)|Parser key "(.*?)"): ((?:\1|\2): .*)',
        lambda flag, key, message: message,
    ),
    (r"argument (?:\S+/)?--(\S+): (expected .*)", lambda name, message: f"{name}: {message}"),
)


# Types of flags: from the text of a flag to its value, or one line that says what was expected.


class FlagError(ValueError, ArgumentTypeError):
    """The one for values in files, the other for flags: only of these does the parser pass the message on."""


def as_flag(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The type of a flag that is read by a function which raises ValueError."""

    def read_flag(value: Any) -> Any:
        try:
            return read(value)
        except ValueError as error:
            raise FlagError(str(error)) from error

    return read_flag


def whole_number(value: Any, least: int = 0) -> int:
    """A whole number that is not negative, or not below another bound."""
    if not re.fullmatch(r"\d{1,18}", str(value)) or int(value) < least:
        raise FlagError(f"expected a whole number >= {least}, got {value}")
    return int(value)


def count(value: Any) -> int:
    """A whole number of at least one."""
    return whole_number(value, least=1)


def positive_number(value: Any) -> float:
    """A number above zero."""
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise FlagError(f"expected a number above 0, got {value}")
    return number


def probability(value: Any) -> float:
    """A number between 0 and 1."""
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise FlagError(f"expected a probability between 0 and 1, got {value}")
    return number


def comma_names(value: Any) -> tuple[str, ...]:
    """`a,b`: names with commas between them."""
    words = tuple(word.strip() for word in str(value).split(","))
    if not all(words) or len(set(words)) < len(words):
        raise FlagError(f"expected names with commas between them, each once, got {value}")
    return words


def named(value: str, ending: str, form: str) -> str:
    """The name of a file that will be of one form."""
    if not value.endswith(ending):
        raise FlagError(f"expected a name that ends with {ending}, got {value}; it will be {form}")
    return value


# Flags with pairs: `--read_outs image=moments,curve=my_module:peaks`.


_EXAMPLES = {"--read_outs": "image=moments", "--environments.targets": "do_hue=hue,do_size=size"}


def pairs_from_text(flag: str, value: str) -> dict[str, str]:
    """`a=b,c=d` as a mapping. Names may hold `=`, values may not.

    Args:
        flag: Name of the flag, for messages.
        value: The text.

    Raises:
        ValueError: An entry that is no pair, or a name given twice.

    >>> pairs_from_text("--environments.targets", "do(hue=1)=hue, heated=size")
    {'do(hue=1)': 'hue', 'heated': 'size'}
    """
    name, example = flag.removeprefix("--"), _EXAMPLES[flag]
    entries = [tuple(word.strip() for word in part.rpartition("=")) for part in value.split(",")]
    if not all(key and word for key, _, word in entries):
        raise ValueError(f"{name}: expected pairs with commas between them, for example {example}, got {value!r}")
    found = {key: word for key, _, word in entries}
    if len(found) < len(entries):
        raise ValueError(f"{name}: expected every name once, for example {example}, got {value!r}")
    return found


def with_pairs(argv: Sequence[str]) -> list[str]:
    """A command line whose pairs are as the parser takes mappings, flag and value in one word.

    Raises:
        ValueError: Pairs that are none.
    """
    words, found = list(argv), []
    while words:
        word = words.pop(0)
        flag, equals, value = word.partition("=")
        if flag in _EXAMPLES and not equals and words and not words[0].startswith("--"):
            equals, value = "=", words.pop(0)
        found.append(f"{flag}={_mapping(flag, value)}" if flag in _EXAMPLES and equals else word)
    return found


def _mapping(flag: str, value: str) -> str:
    return value if value.lstrip().startswith("{") else json.dumps(pairs_from_text(flag, value))
