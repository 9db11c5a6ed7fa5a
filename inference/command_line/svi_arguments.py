"""Arguments of `python -m inference.svi`, checked and complete."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from inference.command_line.data_file import DataFile
from inference.command_line.datasets import DATASETS
from inference.command_line.graph_file import with_graph_file
from inference.command_line.knowledge_arguments import knowledge_of
from inference.command_line.mask_argument import with_mask
from inference.command_line.modality_flags import ModalityFlags, flag_names, split_flags
from inference.command_line.observe import with_observed
from inference.command_line.output_files import check_places
from inference.command_line.pair_flags import with_pairs
from inference.command_line.parsing import UNPARSABLE, plain_values
from inference.command_line.plain_words import choices_in_words, in_plain_words
from inference.command_line.svi_parser import build_parser, flags_of, with_lists
from inference.command_line.svi_source import (
    UNNAMED_NODES,
    Source,
    file_of_setting,
    modality_settings,
    source_of,
    source_settings,
)
from inference.data.multimodal import MultimodalData
from inference.results.strict_json import to_json
from inference.training.config import FitConfig, ModalityConfig
from inference.training.paper import paper_settings
from inference.training.restarts.plan import RestartMode, RestartPlan

__all__ = ["Arguments", "UnparsableError", "given_flags", "parse", "parse_settings"]

_KEPT_WITH_RESUME = ("device", "jobs", "quiet", "stop_after", "json", "allow_code")
_MOST_THREADS = 1024
_MOST_NAMED = 4


class UnparsableError(ValueError):
    """A flag that there is not, or a value that is none of its flag, whatever the other settings are."""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        dataset: Name of the data set, or None for a file.
        file: The file of samples, or None for a data set.
        options: Arguments of the function that makes the data.
        config: Configuration of the fit.
        output_dir: Run folder, or None for a new numbered one.
        force: Replace what is in the run folder.
        resume: Run folder to go on with, or None.
        stop_after: Stop after so many epochs in all, or None.
        device: Where to compute.
        threads: Threads of torch.
        restarts: Number of starts, of which the best is kept.
        jobs: How many starts run at once; None: as many as there are cores.
        restart_mode: Run the starts in `processes`, `batched` as one computation, or `auto`.
        quiet: No progress bar.
        dry_run: Only print what would be done.
        json: File for a copy of the summary, or None.
    """

    dataset: str | None
    file: DataFile | None
    options: Mapping[str, Any]
    config: FitConfig
    output_dir: str | None
    force: bool
    resume: str | None
    stop_after: int | None
    device: str
    threads: int
    restarts: int
    jobs: int | None
    restart_mode: RestartMode
    quiet: bool
    dry_run: bool
    json: str | None

    @property
    def name(self) -> str:
        """Name of the data set or of the file, which run folders begin with."""
        return self.file.name if self.file is not None else self.dataset or ""

    @property
    def plan(self) -> RestartPlan:
        """How many starts there are, and how they are run."""
        return RestartPlan(self.restarts, self.jobs, self.threads, self.restart_mode)

    def make_data(self) -> MultimodalData:
        """The samples."""
        if self.file is not None:
            return self.file.samples
        options = {**self.options}
        if options.get("seed") is None:
            options["seed"] = self.config.seed
        return DATASETS[self.name].make(**options)

    def to_config(self) -> dict[str, Any]:
        """All that repeats the run, as `--config` takes it."""
        named = {"dataset": self.dataset, "dataset_options": dict(self.options)}
        source = named if self.file is None else self.file.to_settings()
        config = self.config.to_dict()
        words = flag_names(config["modality"])
        modality = {words[name]: entry for name, entry in config["modality"].items()}
        run: dict[str, Any] = {"device": self.device, "threads": self.threads, "restarts": self.restarts}
        if self.restarts > 1:
            run["restart_mode"] = self.restart_mode
        if self.jobs is not None:
            run["jobs"] = self.jobs
        return {**source, **run, **config, "modality": modality}


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line, which names the configuration file that gives the
            setting it is about.
    """
    try:
        return _parsed(argv)
    except ValueError as error:
        message = str(error)
        file = file_of_setting(argv, message.partition(":")[0])
        if file is None or file in message:
            raise
        kind = UnparsableError if isinstance(error, UnparsableError) else ValueError
        raise kind(f"{message} (in {file})") from error


def _parsed(argv: Sequence[str]) -> Arguments:
    if "resume" in given_flags(argv):
        _refuse_with_resume(argv)
    argv = with_lists(with_mask(with_pairs(with_observed(argv))))
    settings = source_settings(argv)
    source = source_of(settings)
    flags = _modality_flags(source)
    parser: ArgumentParser | None = None  # one takes as long to build as a command line to parse
    try:
        with plain_values():
            if source is None and modality_settings(argv):  # a data set that there is not is refused before its flags
                build_parser(None).parse_args(split_flags(argv)[0])
            modality = flags.parse(modality_settings(argv))
            parser = build_parser(source, None if _asks_for_help(argv) else _as_settings(modality))
            found = parser.parse_args(split_flags(argv)[0])
        if found.resume is not None:
            _refuse_with_resume(argv)
        check_places("svi", argv, vars(found), {})
        arguments = _arguments(parser.instantiate(found), found, source, modality)
        _check_one_start(arguments)
        return arguments
    except UNPARSABLE as error:
        if settings.get("dataset") is None and source is None and not given_flags(argv) & {"resume", "data"}:
            raise _no_dataset() from error
        known = flags_of(build_parser(None) if parser is None else parser)
        raise UnparsableError(_plain(error, [*known, *flags.flags], settings)) from error


def _modality_flags(source: Source | None) -> ModalityFlags:
    return ModalityFlags({} if source is None else source.experiment.config.modality)


def _asks_for_help(argv: Sequence[str]) -> bool:
    return bool({"-h", "--help"} & set(argv))


def _as_settings(modality: Mapping[str, ModalityConfig]) -> dict[str, Any]:
    """As files of settings have them."""
    words = flag_names(modality)
    return {words[name]: json.loads(to_json(dataclasses.asdict(config))) for name, config in modality.items()}


def parse_settings(settings: Mapping[str, Any]) -> Arguments:
    """The arguments that `Arguments.to_config` wrote down.

    Raises:
        ValueError: They are not of this version of the program, or were edited; the message is one line.
    """
    source = source_of(settings)
    flags, parser = _modality_flags(source), build_parser(source, {})
    try:
        with plain_values():
            found = parser.parse_object(dict(settings))
            modality = flags.parse([settings["modality"]] if "modality" in settings else [])
        return _arguments(parser.instantiate(found), found, source, modality)
    except UNPARSABLE as error:
        raise ValueError(_plain(error, [*flags_of(parser), *flags.flags], settings)) from error


def _plain(error: Exception, flags: Collection[str], settings: Mapping[str, Any]) -> str:
    if isinstance(error, TypeError | AttributeError):
        groups = {flag[:place] for flag in flags for place, sign in enumerate(flag) if sign == "."}
        name, value = next(_no_groups(settings, groups), ("config", "one value in the place of some"))
        return f"{name}: expected settings, each by its name, got {value}; see --print_config"
    return in_plain_words(str(error), flags)


def _no_groups(settings: Mapping[str, Any], groups: Collection[str], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings that are one value or a list where a group of them should be, by their full names."""
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _no_groups(value, groups, f"{name}.")
        elif name in groups:
            yield name, value


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


def _arguments(
    built: Namespace, found: Namespace, source: Source | None, modality: Mapping[str, ModalityConfig]
) -> Arguments:
    if source is None and found.resume is None:
        raise _no_dataset()
    if found.nodes is None and found.resume is None:
        raise ValueError(
            "nodes: expected outcomes per node, for example 2,3 or type=2,response=3, got none; give --nodes"
        )
    _check_range("stop_after", found.stop_after, 0, None)
    _check_range("threads", found.threads or 0, 1, _MOST_THREADS)
    apart = ("nodes", "modality", "mask", "knowledge")
    fields = {f.name: built[f.name] for f in dataclasses.fields(FitConfig) if f.name not in apart}
    # A command line that only resumes has no nodes: they are in the run folder.
    fields |= {"modality": modality, "mask": found.mask or {}, "knowledge": knowledge_of(found.knowledge)}
    nodes = found.nodes or UNNAMED_NODES
    fields["model"] = with_graph_file(fields["model"], tuple(nodes))
    config = FitConfig(nodes=nodes, **fields)
    run = {f.name: found[f.name] for f in dataclasses.fields(Arguments) if f.name not in _NO_FLAGS}
    options = vars(found.dataset_options) if "dataset_options" in found else {}
    config = paper_settings(config) if found.paper_settings else config
    arguments = Arguments(config=config, options=options, file=source.file if source is not None else None, **run)
    arguments.plan.check(config)
    return arguments


_NO_FLAGS = ("config", "options", "file")


def _check_one_start(arguments: Arguments) -> None:
    """Refuse what says how several starts run, where there is one."""
    if arguments.restarts > 1 or arguments.resume is not None:
        return
    if arguments.restart_mode == "batched":
        raise ValueError(
            "restart_mode: expected it with --restarts of 2 or more, got batched for one start; leave it out"
        )
    if arguments.jobs is not None:
        raise ValueError(
            f"jobs: expected it with --restarts of 2 or more, got {arguments.jobs} for one start; leave it out"
        )


def _no_dataset() -> ValueError:
    names = choices_in_words(list(DATASETS))
    return ValueError(f"dataset: expected one of {names}, got none; name it with --dataset, or give a file with --data")


def _check_range(name: str, value: int | None, lowest: int, highest: int | None) -> None:
    if value is not None and (value < lowest or (highest is not None and value > highest)):
        upper = "" if highest is None else f" and <= {highest}"
        raise ValueError(f"{name}: expected a whole number >= {lowest}{upper}, got {value}")
