"""The flags of `python -m inference.svi`: those of the configuration's dataclasses, with the data set's defaults."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from jsonargparse import ActionConfigFile, ArgumentParser, DefaultHelpFormatter, Namespace

from causalpima.inference.command_line.command import HelpFormatter
from causalpima.inference.command_line.files import check_places
from causalpima.inference.command_line.flags import (
    DATASETS,
    DataFile,
    add_knowledge_arguments,
    knowledge_of,
    mask_from_text,
    parse_nodes,
    with_graph_file,
    with_mask,
    with_observed,
)
from causalpima.inference.command_line.parsing import PARSER_MODE, UNPARSABLE, add_code_flag, plain_values
from causalpima.inference.command_line.svi_settings import (
    UNNAMED_NODES,
    ModalityFlags,
    Source,
    file_of_setting,
    flag_names,
    leaves,
    modality_settings,
    names,
    pairs,
    source_of,
    source_settings,
    split_flags,
)
from causalpima.inference.command_line.words import as_flag, choices_in_words, in_plain_words, with_pairs
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.restarts import RestartMode, RestartPlan
from causalpima.inference.store.files import to_json
from causalpima.inference.training.config import FitConfig, ModalityConfig, paper_settings

__all__ = [
    "Arguments",
    "UnparsableError",
    "build_parser",
    "flags_of",
    "given_flags",
    "parse",
    "parse_settings",
    "with_lists",
]


_USAGE = "python -m inference.svi (--dataset NAME | --data FILE --nodes NODES) [--FLAG VALUE ...]"
_LONGEST_CHOICES = 36
_MOST_SHOWN = 8
_DESCRIPTION = """\
Fit causalPIMA to a data set or to a file: clusters, the features that tell them apart, and the graph between the
features.

Every flag can also stand in a file given by --config; --print_config shows all settings. Defaults are those of a data
set or file with --dataset NAME --help or --data FILE --help. The common flags come first, then a line for each of the
others; --help_all has them in full.
"""
_COMMON = ("dataset", "data", "nodes", "mask", "output_dir", "seed", "restarts", "resume", "dry_run", "config")


class _FullFormatter(HelpFormatter, DefaultHelpFormatter):
    """Defaults in brackets, where there are any; types are told by the names of the values."""

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        has_default = action.nargs != 0 and action.default not in (None, argparse.SUPPRESS)
        return f"{text} (default: {_as_typed(action.default)})" if has_default else text


class _BriefFormatter(_FullFormatter):
    """The common flags in full, and the first sentence of each of the others, as far as a line goes."""

    def _format_action(self, action: argparse.Action) -> str:
        if action.help in (None, argparse.SUPPRESS) or action.dest in ("help", *_COMMON):
            return str(super()._format_action(action))
        text = (self._expand_help(action) + " ").partition(". ")[0]
        text = textwrap.shorten(text, max(20, self._width - _BRIEF_COLUMN), placeholder=" ...")
        return f"  {action.option_strings[0]:<{_BRIEF_COLUMN - 3}} {text}\n"

    def format_help(self) -> str:
        """Headings without empty lines above, but for the first."""
        return re.sub(r"\n(\n(?!options)\S.*:\n  )", r"\1", super().format_help())


_BRIEF_COLUMN = 34


def _as_typed(value: Any) -> str:
    """A value as one would type it."""
    if isinstance(value, dict):
        return ",".join(f"{name}={_as_typed(entry)}" for name, entry in value.items())
    if isinstance(value, tuple | list):
        return ",".join(map(str, value)) or "empty"
    return str(value).lower() if isinstance(value, bool) else str(value)


def build_parser(source: Source | None, modality: Any = None, *, brief: bool = False) -> ArgumentParser:
    """The parser, with the flags and the defaults of a data set or a file (of none: the general ones).

    Args:
        source: The data set or the file.
        modality: The settings of all modalities, as a file has them, which `ModalityFlags` has parsed; None: they are
            flags of this parser, too, for its help; those of the first modalities, where there are many.
        brief: Whether its help has a line for what is not common, and no flags of modalities.
    """
    parser = ArgumentParser(
        prog="svi",
        parser_mode=PARSER_MODE,
        usage=_USAGE,
        description=_DESCRIPTION,
        formatter_class=_BriefFormatter if brief else _FullFormatter,
        exit_on_error=False,
        allow_abbrev=False,
    )
    names = "for example circles, lattices or resin_coupons; --help_all lists all" if brief else ", ".join(DATASETS)
    _add_data_arguments(parser, f"Data set: {names}.")
    _add_run_arguments(parser)
    if source is not None and source.file is None:
        parser.add_function_arguments(source.experiment.make, "dataset_options", skip={"seed"})
        parser.add_argument("--dataset_options.seed", type=int | None, help="Seed of the data; default that of --seed.")
    parser.add_class_arguments(FitConfig, skip={"nodes", "modality", "mask", "knowledge"})
    add_knowledge_arguments(parser)
    if modality is not None:
        # For files of settings, which have the entry, and for --print_config.
        parser.add_argument("--modality", type=lambda _: modality, default=modality, help="As in files of settings.")
    elif source is not None and brief:
        words = ModalityFlags(source.experiment.config.modality).words
        parts = [name.removeprefix("NAME.") for name, _ in leaves("NAME", ModalityConfig())]
        names = ", ".join(words[:_MOST_SHOWN])
        parser.epilog = f"For each modality ({names}), --modality.NAME. and one of {', '.join(parts)}."
    elif source is not None:
        _add_modality_flags(parser, source.experiment.config.modality)
    if source is not None:
        parser.set_defaults(dict(_defaults(source)))
    _hide_group_files(parser)
    _shorten_choices(parser)
    _put_common_first(parser)
    return parser


def _put_common_first(parser: ArgumentParser) -> None:
    found = {action.dest: action for action in parser._actions}
    for group in parser._action_groups:
        group._group_actions[:] = [action for action in group._group_actions if action.dest not in _COMMON]
    first = parser._optionals._group_actions
    first[1:1] = [found[name] for name in _COMMON]


def _add_modality_flags(parser: ArgumentParser, modalities: Mapping[str, ModalityConfig]) -> None:
    words = ModalityFlags(modalities).words
    for word, config in list(zip(words, modalities.values(), strict=True))[:_MOST_SHOWN]:
        parser.add_class_arguments(ModalityConfig, f"modality.{word}")
        parser.set_defaults(dict(leaves(f"modality.{word}", config)))
    if len(words) > _MOST_SHOWN:
        parser.epilog = f"The same flags, with defaults of their own, are there for {', '.join(words[_MOST_SHOWN:])}."


def _add_data_arguments(parser: ArgumentParser, datasets: str) -> None:
    """The source of the samples; `svi_source` has read these flags before there is a parser."""
    add = parser.add_argument_group("Samples in a file").add_argument
    add("--dataset", choices=list(DATASETS), metavar="NAME", help=datasets)
    add("--data", type=str, metavar="FILE", help="Samples in a .nc, .npz or .zarr file, in place of --dataset.")
    add("--data_resolved", type=str, help=argparse.SUPPRESS)
    add("--sample_dim", type=str, metavar="NAME", help="Dimension of the samples; default sample, else the first.")
    add("--modalities", type=_names, metavar="A,B", help="Variables to learn from; default all without another role.")
    add("--labels", type=_names, metavar="A,B", help="Known factors, for the evaluation only.")
    add("--groups", "--group", type=_names, metavar="A,B", help="Specimens that stay on one side of every split.")
    add("--covariates", type=_names, metavar="A,B", help="Nuisances that decoders see: batch, instrument.")
    add("--environment", type=_names, metavar="A", help="Environments: under which intervention a sample was taken.")
    add("--observational", type=str, metavar="LEVEL", help="Its level without intervention; default observational.")
    add("--in_memory", type=_in_memory, metavar="WHEN", help="yes, no (samples are read from disk), auto: below 2 GiB.")
    add("--kinds", type=_kinds, metavar="A=KIND", help="Show a modality as image, curve or vector.")


def _add_run_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument_group("The run").add_argument
    add("--nodes", type=as_flag(parse_nodes), metavar="NODES", help="Outcomes per node: 2,3 or type=2,response=3.")
    add(
        "--mask",
        type=as_flag(mask_from_text),
        metavar="A=N1,N2",
        help="Nodes that each modality sees: image=shape,hue spectrum=hue.",
    )
    add("--output_dir", type=str, metavar="FOLDER", help="Run folder; default a new runs/NAME-001, -002, ...")
    add(
        "--force",
        action="store_true",
        help="Replace an earlier run in --output_dir, and a file of --json that is none of this program.",
    )
    add("--stop_after", type=int, metavar="N", help="Stop after N epochs in all; --resume goes on.")
    add("--resume", type=str, metavar="FOLDER", help="Go on with the run in this folder, with its own settings.")
    add("--dry_run", action="store_true", help="Print shapes, parameters, memory and time, and stop.")
    parser.add_argument("--help_all", action="help", help="Show all flags in full, and exit.")
    parser.add_argument("--config", action=ActionConfigFile, metavar="FILE", help="File with settings (YAML or JSON).")
    add_code_flag(parser)
    add("--json", type=str, metavar="FILE", help="Write the summary to this file, too.")
    add("--quiet", action="store_true", help="No progress bar.")
    add("--device", type=str, default="cpu", help="Where to compute, for example cpu or cuda.")
    add("--threads", type=int, default=1, help="Threads of torch.")
    add(
        "--restarts",
        type=int,
        default=1,
        metavar="K",
        help="Starts; the one with the clearest groups is kept.",
    )
    add("--restart_mode", choices=get_args(RestartMode), default="auto", help="How the starts run (docs/restarts.md).")
    add("--jobs", type=int, metavar="J", help="Starts that run at once, a process each; default one per core.")
    add("--paper_settings", action="store_true", help="The settings of the paper, over all others; they do not train.")


def _names(value: Any) -> Any:
    return names(value)


def _in_memory(value: Any) -> Any:
    return value


def _kinds(value: Any) -> Any:
    return pairs(value)


def _defaults(source: Source) -> Iterator[tuple[str, Any]]:
    config = source.experiment.config
    yield from ((f"dataset_options.{name}", value) for name, value in source.experiment.options.items())
    if source.file is None:
        yield "nodes", dict(config.nodes)
    if config.mask:
        yield "mask", dict(config.mask)
    for field in dataclasses.fields(config):
        if field.name not in ("nodes", "modality", "mask"):
            yield from leaves(field.name, getattr(config, field.name))


def _shorten_choices(parser: ArgumentParser) -> None:
    """A word for choices that would not fit into a line of help; the help text names them."""
    for action in parser._actions:
        if isinstance(action.metavar, str) and len(action.metavar) > _LONGEST_CHOICES:
            action.metavar = action.dest.rpartition(".")[2].upper()


def _hide_group_files(parser: ArgumentParser) -> None:
    """No help for `--training FILE` and the like: --config does it, and the list is long enough."""
    for action in parser._actions:
        if action.metavar == "CONFIG":
            action.help = argparse.SUPPRESS


def flags_of(parser: ArgumentParser) -> list[str]:
    """Names of all flags with a help text, without their dashes."""
    return [a.dest for a in parser._actions if a.help != argparse.SUPPRESS and a.dest != "modality"]


def with_lists(argv: Sequence[str]) -> list[str]:
    """The arguments with `64,32`, after a flag for sizes, targets or edges, as the parser takes lists: `[64,32]`."""
    words = list(argv)
    for position, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag.startswith("--") and flag.endswith((".sizes", ".targets", ".edges")):
            if equals:
                words[position] = f"{flag}={_bracketed(value)}"
            elif position + 1 < len(words):
                words[position + 1] = _bracketed(words[position + 1])
    return words


def _bracketed(value: str) -> str:
    return value if value.startswith(("[", "{", "--")) else f"[{value}]"


# Arguments of `python -m inference.svi`, checked and complete.


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
            settings_of_modalities = None if _asks_for_help(argv) else _as_settings(modality)
            parser = build_parser(source, settings_of_modalities, brief="--help_all" not in argv)
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
    return bool({"-h", "--help", "--help_all"} & set(argv))


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
    changing = sorted(given_flags(argv) - {"resume", "help", "help_all", *_KEPT_WITH_RESUME})
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
