"""Where the samples of a command line come from: known before there are flags for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import Any

from guides.fusion import MIXTURES, Fusion
from inference.command_line.data_file import OPTIONS, DataFile
from inference.command_line.datasets import DATASETS
from inference.command_line.modality_flags import split_flags
from inference.command_line.observe import observed_in
from inference.results.input_files import reason_of
from inference.results.versions import FORMAT_KEY, check_format
from inference.results.yaml_text import read_yaml
from inference.training.config import DistillationConfig
from inference.training.defaults import default_batch_size, default_config
from inference.training.experiment import Experiment
from inference.training.user_components import user_component
from models.user_code import names_user_code

__all__ = [
    "UNNAMED_NODES",
    "Source",
    "file_of_setting",
    "modality_settings",
    "names",
    "pairs",
    "source_of",
    "source_settings",
]

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
