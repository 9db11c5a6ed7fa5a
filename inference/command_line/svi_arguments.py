"""Arguments of `python -m inference.svi`, checked and complete."""

from __future__ import annotations

import dataclasses
from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import yaml
from jsonargparse import ArgumentError, ArgumentParser, Namespace

from inference.command_line.datasets import DATASETS
from inference.command_line.plain_words import in_plain_words
from inference.command_line.svi_parser import build_parser, flags_of, with_lists
from inference.data.multimodal import MultimodalData
from inference.training.config import FitConfig
from inference.training.paper import paper_settings

__all__ = ["Arguments", "given_flags", "parse", "parse_settings"]

_KEPT_WITH_RESUME = ("device", "quiet", "stop_after", "json")
_MOST_THREADS = 1024
_MOST_NAMED = 4


# What jsonargparse raises, of its own and, for groups that are null or a list, of Python.
_UNPARSABLE = (ArgumentError, ArgumentTypeError, TypeError, AttributeError)


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        dataset: Name of the data set.
        options: Arguments of the function that makes the data.
        config: Configuration of the fit.
        output_dir: Run folder, or None for a new numbered one.
        force: Replace what is in the run folder.
        resume: Run folder to go on with, or None.
        stop_after: Stop after so many epochs in all, or None.
        device: Where to compute.
        threads: Threads of torch.
        quiet: No progress bar.
        dry_run: Only print what would be done.
        json: File for a copy of the summary, or None.
    """

    dataset: str
    options: Mapping[str, Any]
    config: FitConfig
    output_dir: str | None
    force: bool
    resume: str | None
    stop_after: int | None
    device: str
    threads: int
    quiet: bool
    dry_run: bool
    json: str | None

    def make_data(self) -> MultimodalData:
        """The samples."""
        options = {**self.options}
        if options.get("seed") is None:
            options["seed"] = self.config.seed
        return DATASETS[self.dataset].make(**options)

    def to_config(self) -> dict[str, Any]:
        """All that repeats the run, as `--config` takes it."""
        settings = {"dataset": self.dataset, "device": self.device, "threads": self.threads}
        return {**settings, "dataset_options": dict(self.options), **self.config.to_dict()}


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    if "resume" in given_flags(argv):
        _refuse_with_resume(argv)
    dataset = _dataset_of(argv)
    parser = build_parser(dataset)
    try:
        found = parser.parse_args(with_lists(argv))
        if found.resume is not None:
            _refuse_with_resume(argv)
        return _arguments(parser.instantiate(found), found)
    except _UNPARSABLE as error:
        if dataset is None and "resume" not in given_flags(argv):
            raise _no_dataset() from error
        raise ValueError(_plain(error, parser)) from error


def parse_settings(settings: Mapping[str, Any]) -> Arguments:
    """The arguments that `Arguments.to_config` wrote down.

    Raises:
        ValueError: They are not of this version of the program, or were edited; the message is one line.
    """
    dataset = settings.get("dataset")
    parser = build_parser(dataset if isinstance(dataset, str) else None)
    try:
        found = parser.parse_object(dict(settings))
        return _arguments(parser.instantiate(found), found)
    except _UNPARSABLE as error:
        raise ValueError(_plain(error, parser)) from error


def _plain(error: Exception, parser: ArgumentParser) -> str:
    if isinstance(error, TypeError | AttributeError):
        return "config: expected a group of settings, each by its name, where one value stands; see --print_config"
    return in_plain_words(str(error), flags_of(parser))


def given_flags(argv: Sequence[str]) -> set[str]:
    """Names of the flags on a command line, without their dashes."""
    return {word.partition("=")[0].removeprefix("--") for word in argv if word.startswith("--")}


def _refuse_with_resume(argv: Sequence[str]) -> None:
    changing = sorted(given_flags(argv) - {"resume", "help", *_KEPT_WITH_RESUME})
    if changing:
        more = f" and {len(changing) - _MOST_NAMED} more" if len(changing) > _MOST_NAMED else ""
        got = ", ".join(changing[:_MOST_NAMED]) + more
        raise ValueError(
            f"resume: expected no other flags than {', '.join(_KEPT_WITH_RESUME)}, got {got}; "
            "a resumed run keeps its settings, start a new one to change them"
        )


def _dataset_of(argv: Sequence[str]) -> str | None:
    """The data set that a command line or a configuration file on it names, before there are flags for it."""
    named = [_read_settings(file).get("dataset") for file in _values_of(argv, "--config")]
    named += _values_of(argv, "--dataset")
    return next((name for name in reversed(named) if isinstance(name, str)), None)


def _read_settings(file: str) -> dict[str, Any]:
    """The content of a configuration file, refused in plain words before the parser meets it."""
    try:
        with open(file, encoding="utf-8") as stream:
            content = yaml.safe_load(stream)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "problem", None) or "it is no text"
        raise ValueError(f"config: expected a readable YAML or JSON file, got {file} ({reason})") from error
    if not isinstance(content, dict):
        raise ValueError(f"config: expected settings by name in {file}, got {type(content).__name__}")
    return content


def _values_of(argv: Sequence[str], flag: str) -> list[str]:
    after = [value for word, value in pairwise(argv) if word == flag]
    return after + [word.partition("=")[2] for word in argv if word.startswith(f"{flag}=")]


def _arguments(built: Namespace, found: Namespace) -> Arguments:
    if found.dataset is None and found.resume is None:
        raise _no_dataset()
    _check_range("stop_after", found.stop_after, 0, None)
    _check_range("threads", found.threads or 0, 1, _MOST_THREADS)
    modality = vars(built.modality) if "modality" in built else {}
    fields = {f.name: built[f.name] for f in dataclasses.fields(FitConfig) if f.name not in ("nodes", "modality")}
    config = FitConfig(nodes=found.nodes or _PLACEHOLDER, modality=modality, **fields)
    run = {f.name: found[f.name] for f in dataclasses.fields(Arguments) if f.name not in ("config", "options")}
    options = vars(found.dataset_options) if "dataset_options" in found else {}
    return Arguments(config=paper_settings(config) if found.paper_settings else config, options=options, **run)


# The nodes of a command line that only resumes: its own are in the run folder.
_PLACEHOLDER = {"N1": 2}


def _no_dataset() -> ValueError:
    return ValueError(f"dataset: expected one of {', '.join(DATASETS)}, got none; name it with --dataset")


def _check_range(name: str, value: int | None, lowest: int, highest: int | None) -> None:
    if value is not None and (value < lowest or (highest is not None and value > highest)):
        upper = "" if highest is None else f" and <= {highest}"
        raise ValueError(f"{name}: expected a whole number >= {lowest}{upper}, got {value}")
