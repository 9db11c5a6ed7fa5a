"""Settings of the modalities, on a command line (`--modality.NAME.encoder.kind mlp`) and in files of settings."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from jsonargparse import ArgumentError, ArgumentParser, Namespace

from inference.command_line.parsing import PARSER_MODE, UNPARSABLE
from inference.training.config import ModalityConfig

__all__ = ["ModalityFlags", "flag_names", "leaves", "split_flags"]

_FLAG = "--modality"
_PREFIX = "modality.NAME"


def flag_names(modalities: Iterable[str]) -> dict[str, str]:
    """The word for each modality in `--modality.WORD.weight` and in configuration files, all different.

    >>> flag_names(["load", "stress [MPa]", "stress-MPa"])
    {'load': 'load', 'stress [MPa]': 'stress_MPa', 'stress-MPa': 'stress_MPa_2'}
    """
    words: dict[str, str] = {}
    taken: set[str] = set()
    for name in modalities:
        words[name] = _free(_word(name), taken)
        taken.add(words[name])
    return words


def _word(name: str) -> str:
    word = re.sub(r"\W+", "_", name).strip("_") or "modality"
    return f"{word}_" if hasattr(Namespace, word) else word


def _free(word: str, taken: set[str]) -> str:
    number, free = 1, word
    while free in taken:
        number += 1
        free = f"{word}_{number}"
    return free


def split_flags(argv: Sequence[str]) -> tuple[list[str], list[tuple[int, tuple[str, ...]]]]:
    """A command line without the flags of modalities, and these, each with its value and the place where it stood.

    >>> split_flags(["--seed", "1", "--modality.image.weight", "2", "--modality.image.standardise=true"])
    (['--seed', '1'], [(2, ('--modality.image.weight', '2')), (4, ('--modality.image.standardise=true',))])
    """
    rest: list[str] = []
    found: list[tuple[int, tuple[str, ...]]] = []
    place = 0
    while place < len(argv):
        word, following = argv[place], argv[place + 1 : place + 2]
        if not word.startswith(f"{_FLAG}.") and word.partition("=")[0] != _FLAG:
            rest.append(word)
            place += 1
            continue
        has_value = "=" not in word and bool(following) and not following[0].startswith("--")
        found.append((place, (word, *(following if has_value else []))))
        place += 2 if has_value else 1
    return rest, found


def leaves(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The settings in a dataclass of settings, each with its full name."""
    if not dataclasses.is_dataclass(value):
        yield prefix, value
        return
    for field in dataclasses.fields(value):
        yield from leaves(f"{prefix}.{field.name}", getattr(value, field.name))


class ModalityFlags:
    """The flags of the modalities of a data set.

    One parser of a single modality serves all of them: what a parser of the flags of all modalities takes grows with
    the square of their number, half a minute with a hundred.

    Args:
        defaults: Configuration of each modality, by its name.
    """

    def __init__(self, defaults: Mapping[str, ModalityConfig]) -> None:
        self._defaults = defaults
        self._names = {word: name for name, word in flag_names(defaults).items()}

    @property
    def words(self) -> tuple[str, ...]:
        """The words for the modalities in flags."""
        return tuple(self._names)

    @property
    def flags(self) -> list[str]:
        """All flags, without their dashes."""
        parts = [name.removeprefix(_PREFIX) for name, _ in leaves(_PREFIX, ModalityConfig())]
        return [f"modality.{word}{part}" for word in self._names for part in parts]

    @cached_property
    def _parser(self) -> ArgumentParser:
        parser = ArgumentParser(parser_mode=PARSER_MODE, exit_on_error=False, allow_abbrev=False, add_help=False)
        parser.add_class_arguments(ModalityConfig, _PREFIX)
        return parser

    def parse(self, given: Sequence[Any]) -> dict[str, ModalityConfig]:
        """Configuration of each modality, by its name.

        Args:
            given: What was said, later entries over earlier ones: words of a flag (a tuple), or the entry `modality`
                of a file.

        Raises:
            ArgumentError: A flag or a setting that there is not, or a value that is none of it.
        """
        said: dict[str, list[Any]] = {}
        for entry in given:
            for word, part in self._by_word(entry):
                said.setdefault(word, []).append(part)
        return {
            name: self._one(word, said[word]) if word in said else self._defaults[name]
            for word, name in self._names.items()
        }

    def _by_word(self, entry: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(entry, tuple):
            flag = entry[0].partition("=")[0]
            word = flag.removeprefix(f"{_FLAG}.").partition(".")[0]
            if word not in self._names:
                raise ArgumentError(None, f"unrecognized arguments: {flag}")
            yield word, entry
            return
        for word, part in _group("modality", entry).items():
            if word not in self._names:
                inner = f".{next(iter(part))}" if isinstance(part, Mapping) and part else ""
                raise ArgumentError(None, f"Option 'modality.{word}{inner}' is not accepted")
            yield word, part if isinstance(part, str) else _group(f"modality.{word}", part)

    def _one(self, word: str, said: Sequence[Any]) -> ModalityConfig:
        parser = self._parser
        parser.set_defaults(dict(leaves(_PREFIX, self._defaults[self._names[word]])))
        found = parser.get_defaults()
        try:
            for part in said:
                if isinstance(part, tuple):
                    words = [part[0].replace(f"modality.{word}", _PREFIX, 1), *part[1:]]
                    found = parser.parse_args(words, namespace=found)
                else:
                    found = parser.parse_object({"modality": {"NAME": part}}, found)
            built: ModalityConfig = parser.instantiate(found).modality.NAME
        except UNPARSABLE as error:
            message = str(error).replace(_PREFIX, f"modality.{word}")
            raise ArgumentError(None, message) if isinstance(error, ArgumentError) else type(error)(message) from error
        return built


def _group(name: str, entry: Any) -> Mapping[str, Any]:
    if not isinstance(entry, Mapping):
        raise ArgumentError(None, f"{name}: expected settings, each by its name, got {entry!r}; see --print_config")
    return entry
