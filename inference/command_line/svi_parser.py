"""The flags of `python -m inference.svi`: those of the configuration's dataclasses, with the data set's defaults."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from jsonargparse import ActionConfigFile, ArgumentParser, DefaultHelpFormatter

from inference.command_line.datasets import DATASETS
from inference.command_line.flag_types import FlagError
from inference.command_line.knowledge_arguments import add_knowledge_arguments
from inference.command_line.mask_argument import mask_from_text
from inference.command_line.modality_flags import ModalityFlags, leaves
from inference.command_line.nodes import parse_nodes
from inference.command_line.parsing import PARSER_MODE, add_code_flag
from inference.command_line.svi_source import Source, names, pairs
from inference.training.config import FitConfig, ModalityConfig
from inference.training.restarts.plan import RestartMode

__all__ = ["build_parser", "flags_of", "with_lists"]

_USAGE = "python -m inference.svi (--dataset NAME | --data FILE --nodes NODES) [--FLAG VALUE ...]"
_LONGEST_CHOICES = 36
_MOST_SHOWN = 8
_DESCRIPTION = """\
Fit causalPIMA to a data set or to a file: clusters, the features that tell them apart, and the graph between the
features.

Every flag can also stand in a file given by --config; --print_config shows all settings. Flags of a data set
(--dataset_options, --modality) are shown by --dataset NAME --help, those of a file by --data FILE --help.
"""


class _HelpFormatter(DefaultHelpFormatter):
    """Defaults in brackets, where there are any; types are told by the names of the values."""

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        has_default = action.nargs != 0 and action.default not in (None, argparse.SUPPRESS)
        return f"{text} (default: {_as_typed(action.default)})" if has_default else text

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.split("\n\n")
        return "\n\n".join(super(_HelpFormatter, self)._fill_text(part, width, indent) for part in paragraphs)


def _as_typed(value: Any) -> str:
    """A value as one would type it."""
    if isinstance(value, dict):
        return ",".join(f"{name}={_as_typed(entry)}" for name, entry in value.items())
    if isinstance(value, tuple | list):
        return ",".join(map(str, value)) or "empty"
    return str(value).lower() if isinstance(value, bool) else str(value)


def build_parser(source: Source | None, modality: Any = None) -> ArgumentParser:
    """The parser, with the flags and the defaults of a data set or a file (of none: the general ones).

    Args:
        source: The data set or the file.
        modality: The settings of all modalities, as a file has them, which `ModalityFlags` has parsed; None: they are
            flags of this parser, too, for its help; those of the first modalities, where there are many.
    """
    parser = ArgumentParser(
        prog="svi",
        parser_mode=PARSER_MODE,
        usage=_USAGE,
        description=_DESCRIPTION,
        formatter_class=_HelpFormatter,
        exit_on_error=False,
        allow_abbrev=False,
    )
    _add_data_arguments(parser)
    _add_run_arguments(parser)
    if source is not None and source.file is None:
        parser.add_function_arguments(source.experiment.make, "dataset_options", skip={"seed"})
        parser.add_argument("--dataset_options.seed", type=int | None, help="Seed of the data; default that of --seed.")
    parser.add_class_arguments(FitConfig, skip={"nodes", "modality", "mask", "knowledge"})
    add_knowledge_arguments(parser)
    if modality is not None:
        # For files of settings, which have the entry, and for --print_config.
        parser.add_argument("--modality", type=lambda _: modality, default=modality, help="As in files of settings.")
    elif source is not None:
        _add_modality_flags(parser, source.experiment.config.modality)
    if source is not None:
        parser.set_defaults(dict(_defaults(source)))
    _hide_group_files(parser)
    _shorten_choices(parser)
    return parser


def _add_modality_flags(parser: ArgumentParser, modalities: Mapping[str, ModalityConfig]) -> None:
    words = ModalityFlags(modalities).words
    for word, config in list(zip(words, modalities.values(), strict=True))[:_MOST_SHOWN]:
        parser.add_class_arguments(ModalityConfig, f"modality.{word}")
        parser.set_defaults(dict(leaves(f"modality.{word}", config)))
    if len(words) > _MOST_SHOWN:
        parser.epilog = f"The same flags, with defaults of their own, are there for {', '.join(words[_MOST_SHOWN:])}."


def _add_data_arguments(parser: ArgumentParser) -> None:
    """The source of the samples; `svi_source` has read these flags before there is a parser."""
    add = parser.add_argument
    add("--dataset", choices=list(DATASETS), metavar="NAME", help=f"Data set: {', '.join(DATASETS)}.")
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
    add = parser.add_argument
    add("--nodes", type=_nodes, metavar="NODES", help="Outcomes per node: 2,3 or type=2,response=3.")
    add("--mask", type=_mask, metavar="A=N1,N2", help="Nodes that each modality sees: image=shape,hue spectrum=hue.")
    add("--output_dir", type=str, metavar="FOLDER", help="Run folder; default a new runs/NAME-001, -002, ...")
    add(
        "--force",
        action="store_true",
        help="Replace an earlier run in --output_dir, and a file of --json that is none of this program.",
    )
    add("--stop_after", type=int, metavar="N", help="Stop after N epochs in all; --resume goes on.")
    add("--resume", type=str, metavar="FOLDER", help="Go on with the run in this folder, with its own settings.")
    add("--dry_run", action="store_true", help="Print shapes, parameters, memory and time, and stop.")
    add("--config", action=ActionConfigFile, metavar="FILE", help="File with settings (YAML or JSON).")
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


def _nodes(value: Any) -> dict[str, int]:
    try:
        return parse_nodes(value)
    except ValueError as error:
        raise FlagError(str(error)) from error


def _mask(value: Any) -> dict[str, tuple[str, ...]]:
    try:
        return mask_from_text(value)
    except ValueError as error:
        raise FlagError(str(error)) from error


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
