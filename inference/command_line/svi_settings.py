"""Where the samples of a command line come from: known before there are flags for them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentError, ArgumentParser, Namespace

from causalpima.guides.fusion import MIXTURES, Fusion
from causalpima.inference.command_line.flags import DATASETS, OPTIONS, DataFile, observed_in
from causalpima.inference.command_line.parsing import PARSER_MODE, UNPARSABLE
from causalpima.inference.store.files import FORMAT_KEY, check_format
from causalpima.inference.store.input_files import reason_of
from causalpima.inference.store.yaml_text import read_yaml
from causalpima.inference.training.config import (
    DistillationConfig,
    Experiment,
    ModalityConfig,
    default_batch_size,
    default_config,
)
from causalpima.inference.training.user_code import user_component
from causalpima.models.user_code import names_user_code

__all__ = [
    "UNNAMED_NODES",
    "ModalityFlags",
    "Source",
    "file_of_setting",
    "flag_names",
    "leaves",
    "modality_settings",
    "names",
    "pairs",
    "source_of",
    "source_settings",
    "split_flags",
]


# Settings of the modalities, on a command line (`--modality.NAME.encoder.kind mlp`) and in files of settings.


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


UNNAMED_NODES = {"N1": 2}
"""Nodes that stand in where a command line has none."""

_LISTS = ("modalities", "labels", "groups", "covariates", "environment")
_NUMBERS = ("n_samples", "n_per_environment")
_SPELLINGS = {"groups": ("--groups", "--group")}


@dataclass(frozen=True)
class Source:
    """A named data set, or a file with the defaults for what is in it.

    Attributes:
        experiment: Data and default configuration.
        file: The file, if it is one.
    """

    experiment: Experiment
    file: DataFile | None = None

    @classmethod
    def named(cls, dataset: str | None) -> Source | None:
        """That of a data set; None for a name that is none."""
        return cls(DATASETS[dataset]) if dataset is not None and dataset in DATASETS else None

    @classmethod
    def of_file(cls, file: DataFile) -> Source:
        """That of a file that was read."""
        return cls(Experiment(lambda: file.samples, default_config(file.samples, UNNAMED_NODES)), file)

    def for_options(self, options: Mapping[str, Any]) -> Source:
        """The same with smaller batches by default where options of a named data set make it smaller.

        Args:
            options: Those that were given, by name; what is no number is for others to refuse.
        """
        n_samples, usual = (_number_of_samples(self.experiment, given) for given in (options, {}))
        if n_samples is None or usual is None or n_samples >= usual:
            return self
        training = self.experiment.config.training
        fewer = dataclasses.replace(training, batch_size=min(training.batch_size, default_batch_size(n_samples)))
        config = dataclasses.replace(self.experiment.config, training=fewer)
        return dataclasses.replace(self, experiment=dataclasses.replace(self.experiment, config=config))

    def without_distillation(self) -> Source:
        """The same with no distillation by default, for a guide in which there is nothing to distil."""
        config = dataclasses.replace(self.experiment.config, distillation=DistillationConfig(0))
        return dataclasses.replace(self, experiment=dataclasses.replace(self.experiment, config=config))


def _number_of_samples(experiment: Experiment, options: Mapping[str, Any]) -> int | None:
    """Samples of a named data set by its options, with those of its environments; None where these do not tell."""
    usual = {name: parameter.default for name, parameter in signature(experiment.make).parameters.items()}
    given = {**usual, **experiment.options, **options}
    try:
        n_samples = int(given["n_samples"])
        per_environment = given.get("n_per_environment")
        each = n_samples // 2 if per_environment is None else int(per_environment)
    except (KeyError, TypeError, ValueError):
        return None
    return n_samples + each * len(usual.get("targets", ()))


def source_settings(argv: Sequence[str]) -> dict[str, Any]:
    """The settings on a command line and in configuration files on it, as far as the source goes; flags go over files.

    Raises:
        ValueError: A configuration file that cannot be read.
    """
    settings: dict[str, Any] = {}
    for file in _values_of(argv, "--config"):
        settings |= _read_settings(file)
    for name in ("dataset", "data", "mask", "guide.fusion", "observe.variables", *OPTIONS):
        values = [value for flag in _SPELLINGS.get(name, (f"--{name}",)) for value in _values_of(argv, flag)]
        if values:
            settings[name] = values[-1]
    settings["dataset_options"] = _dataset_options(argv, settings.get("dataset_options"))
    if _values_of(argv, "--data"):
        settings.pop("data_resolved", None)
    return settings


def modality_settings(argv: Sequence[str]) -> list[Any]:
    """What a command line and the files on it say of modalities, in order: words of a flag, entries of a file.

    Raises:
        ValueError: A configuration file that cannot be read.
    """
    said: list[tuple[int, Any]] = list(split_flags(argv)[1])
    for place, word in enumerate(argv):
        flag, equals, file = word.partition("=")
        if flag == "--config" and (equals or place + 1 < len(argv)):
            settings = _read_settings(file if equals else argv[place + 1])
            said += [(place, settings["modality"])] if "modality" in settings else []
    return [entry for _, entry in sorted(said, key=lambda pair: pair[0])]


def _dataset_options(argv: Sequence[str], of_file: Any) -> dict[str, Any]:
    """Options that say how many samples a named data set has."""
    given = {name: _values_of(argv, f"--dataset_options.{name}") for name in _NUMBERS}
    flags = {name: values[-1] for name, values in given.items() if values}
    return {**(of_file if isinstance(of_file, Mapping) else {}), **flags}


def source_of(settings: Mapping[str, Any]) -> Source | None:
    """What settings name as `dataset` or `data`.

    Raises:
        ValueError: Both, options of a file without one, or a file that cannot be read.
    """
    source = _named_source(settings)
    return source.without_distillation() if source is not None and _is_taught_nothing(settings) else source


def _is_taught_nothing(settings: Mapping[str, Any]) -> bool:
    """Whether encoders have nothing to be taught after joint training: under a mask, and by mixtures of experts."""
    guide = settings.get("guide")
    fusion = settings.get("guide.fusion", guide.get("fusion") if isinstance(guide, Mapping) else None)
    return bool(settings.get("mask")) or fusion in MIXTURES or _is_own_mixture(fusion)


def _is_own_mixture(fusion: Any) -> bool:
    """Whether it is a class of the user's that says so; a function is known when it is called."""
    if not isinstance(fusion, str) or not names_user_code(fusion):
        return False
    return bool(getattr(user_component("guide.fusion", fusion, Fusion), "teaches_alone", False))


def _named_source(settings: Mapping[str, Any]) -> Source | None:
    dataset, data = settings.get("dataset"), settings.get("data")
    if data is None:
        _refuse_options(settings)
        source = Source.named(dataset if isinstance(dataset, str) else None)
        options = settings.get("dataset_options")
        return source.for_options(options) if source is not None and isinstance(options, Mapping) else source
    if dataset is not None:
        raise ValueError(f"data: expected either --dataset or --data, got {dataset} and {data}; leave one of them out")
    return Source.of_file(DataFile.read({**settings, **_options(settings)}, observed_in(settings)))


def _refuse_options(settings: Mapping[str, Any]) -> None:
    given = [name for name in OPTIONS if settings.get(name) is not None]
    if given:
        raise ValueError(f"{given[0]}: expected it with a file of samples, got none; name the file with --data")


def _options(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: names(settings.get(name)) for name in _LISTS}, "kinds": pairs(settings.get("kinds"))}


def names(value: Any) -> Any:
    """`a,b` as the names that it lists; anything else as it is."""
    return tuple(part.strip() for part in value.strip("[]").split(",")) if isinstance(value, str) else value


def pairs(value: Any) -> Any:
    """`a=curve,b=image` as a mapping; anything else as it is.

    Raises:
        ValueError: An entry without `=`.
    """
    if not isinstance(value, str):
        return value
    entries = [part.partition("=") for part in value.split(",")]
    if not all(name.strip() and equals for name, equals, _ in entries):
        raise ValueError(f"kinds: expected NAME=KIND, with commas between them, got {value!r}")
    return {name.strip(): kind.strip() for name, _, kind in entries}


def file_of_setting(argv: Sequence[str], name: str) -> str | None:
    """The configuration file on a command line that gives a setting; None: none does, or a flag goes over it.

    Args:
        argv: The command line.
        name: Of the setting or of its group, with dots; `config`: any.
    """
    if _values_of(argv, f"--{name}") and name != "config":
        return None
    files = reversed(_values_of(argv, "--config"))
    return next((file for file in files if name == "config" or _gives(_read_settings(file), name.split("."))), None)


def _gives(settings: Any, parts: Sequence[str]) -> bool:
    if not parts or not isinstance(settings, Mapping):
        return not parts
    return ".".join(parts) in settings or (parts[0] in settings and _gives(settings[parts[0]], parts[1:]))


def _read_settings(file: str) -> dict[str, Any]:
    """The content of a configuration file, refused in plain words before the parser meets it."""
    try:
        content = read_yaml(Path(file).expanduser())
    except (OSError, ValueError) as error:
        raise ValueError(f"config: expected a readable YAML or JSON file, got {file} ({reason_of(error)})") from error
    if not isinstance(content, dict):
        raise ValueError(f"config: expected settings by name in {file}, got {type(content).__name__}")
    check_format(file, content.pop(FORMAT_KEY, None))
    return content


def _values_of(argv: Sequence[str], flag: str) -> list[str]:
    after = [value for word, value in pairwise(argv) if word == flag]
    return after + [word.partition("=")[2] for word in argv if word.startswith(f"{flag}=")]
