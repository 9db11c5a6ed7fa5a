"""Arguments of `python -m inference.svi`: flags from the configuration's dataclasses, with the data set's defaults."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from jsonargparse import ActionConfigFile, ArgumentError, ArgumentParser, Namespace

from examples.circles import EXPERIMENTS as CIRCLES
from inference.command_line.nodes import parse_nodes
from inference.data.multimodal import MultimodalData
from inference.training.config import FitConfig, ModalityConfig, paper_settings
from inference.training.experiment import Experiment

__all__ = ["DATASETS", "Arguments", "build_parser", "parse", "parse_settings", "refuse_with_resume"]

DATASETS: Mapping[str, Experiment] = {**CIRCLES}

_KEPT_WITH_RESUME = {"resume", "device", "quiet", "stop_after", "json"}
_DESCRIPTION = """\
Fit causalPIMA to a data set: clusters, the features that tell them apart, and the graph between the features.

Every flag can also stand in a file given by --config; --print_config shows all settings of a data set.
"""


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


def build_parser(dataset: str | None) -> ArgumentParser:
    """The parser, with the flags and the defaults of a data set (of none: the general ones)."""
    parser = ArgumentParser(prog="python -m inference.svi", description=_DESCRIPTION, exit_on_error=False, allow_abbrev=False)
    _add_run_arguments(parser)
    experiment = DATASETS.get(dataset or "")
    if experiment is not None:
        _add_dataset_arguments(parser, experiment)
        for name in experiment.config.modality:
            parser.add_class_arguments(ModalityConfig, f"modality.{name}")
    parser.add_argument("--nodes", type=str | dict[str, int] | list[int], help="outcomes per node: 2,3 or type=2,response=3")
    parser.add_class_arguments(FitConfig, skip={"nodes", "modality"})
    if experiment is not None:
        _set_defaults(parser, experiment)
    return parser


def _add_run_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--config", action=ActionConfigFile, help="file with settings (YAML or JSON)")
    parser.add_argument("--dataset", choices=list(DATASETS), help="named data set with its own defaults")
    parser.add_argument("--output_dir", type=str, help="run folder; default a new runs/DATASET-NNN")
    parser.add_argument("--force", action="store_true", help="replace an earlier run in --output_dir")
    parser.add_argument("--resume", type=str, metavar="RUN", help="go on with the run in this folder")
    parser.add_argument("--stop_after", type=int, metavar="N", help="stop after N epochs in all; --resume goes on")
    parser.add_argument("--device", type=str, default="cpu", help="where to compute, for example cpu or cuda")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (default: 1)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.add_argument("--dry_run", action="store_true", help="print shapes, parameters, memory and time, and stop")
    parser.add_argument("--json", type=str, metavar="FILE", help="write the summary to this file, too")
    parser.add_argument("--paper_settings", action="store_true", help="the paper's stated settings; they do not train")


def _add_dataset_arguments(parser: ArgumentParser, experiment: Experiment) -> None:
    parser.add_function_arguments(experiment.make, "dataset_options", skip={"seed"})
    parser.add_argument("--dataset_options.seed", type=int | None, help="seed of the data (default: --seed)")


def _set_defaults(parser: ArgumentParser, experiment: Experiment) -> None:
    config = experiment.config
    parser.set_defaults({f"dataset_options.{name}": value for name, value in experiment.options.items()})
    plain = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    defaults = {name: value for name, value in plain.items() if name not in ("nodes", "modality")}
    for name, value in defaults.items():
        for key, leaf in _leaves(name, value):
            parser.set_defaults({key: leaf})
    for name, entry in config.modality.items():
        for key, leaf in _leaves(f"modality.{name}", entry):
            parser.set_defaults({key: leaf})
    parser.set_defaults({"nodes": ",".join(f"{name}={outcomes}" for name, outcomes in config.nodes.items())})


def _leaves(prefix: str, value: Any) -> list[tuple[str, Any]]:
    if not dataclasses.is_dataclass(value):
        return [(prefix, value)]
    pairs: list[tuple[str, Any]] = []
    for field in dataclasses.fields(value):
        pairs += _leaves(f"{prefix}.{field.name}", getattr(value, field.name))
    return pairs


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    try:
        parser = build_parser(_dataset_of(argv))
        found = parser.parse_args(list(argv))
        return _arguments(parser, found)
    except ArgumentError as error:
        raise ValueError(str(error)) from error


def parse_settings(settings: Mapping[str, Any]) -> Arguments:
    """The arguments that `Arguments.to_config` wrote down.

    Raises:
        ValueError: They are not of this version of the program, or were edited; the message is one line.
    """
    try:
        parser = build_parser(settings.get("dataset"))
        return _arguments(parser, parser.parse_object(dict(settings)))
    except ArgumentError as error:
        raise ValueError(f"config.yaml: {error}") from error


def refuse_with_resume(argv: Sequence[str]) -> None:
    """Refuse flags that would change a run that is resumed.

    Raises:
        ValueError: There are such flags.
    """
    flags = {argument.partition("=")[0].removeprefix("--") for argument in argv if argument.startswith("--")}
    changing = sorted(flags - _KEPT_WITH_RESUME)
    if changing:
        raise ValueError(
            f"resume: expected no other flags than {', '.join(sorted(_KEPT_WITH_RESUME - {'resume'}))}, "
            f"got {', '.join(changing)}; a resumed run keeps its settings, start a new one to change them"
        )


def _dataset_of(argv: Sequence[str]) -> str | None:
    """The data set that a command line or its configuration file names, before there are flags for it."""
    dataset = _value_of(argv, "--dataset")
    file = _value_of(argv, "--config")
    if dataset is None and file is not None:
        try:
            with open(file) as stream:
                content = yaml.safe_load(stream)
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ValueError(f"config: expected a readable YAML file, got {file} ({error})") from error
        dataset = content.get("dataset") if isinstance(content, dict) else None
    return dataset


def _value_of(argv: Sequence[str], flag: str) -> str | None:
    for position, argument in enumerate(argv):
        if argument == flag and position + 1 < len(argv):
            return argv[position + 1]
        if argument.startswith(f"{flag}="):
            return argument.partition("=")[2]
    return None


def _arguments(parser: ArgumentParser, found: Namespace) -> Arguments:
    if found.resume is None and found.dataset is None:
        raise ValueError(f"dataset: expected one of {', '.join(DATASETS)}; name it with --dataset")
    if found.stop_after is not None and found.stop_after < 0:
        raise ValueError(f"stop_after: expected a number of epochs >= 0, got {found.stop_after}")
    if found.threads < 1:
        raise ValueError(f"threads: expected a number >= 1, got {found.threads}")
    built = parser.instantiate(found)
    modality = {name: getattr(built.modality, name) for name in vars(built.get("modality", Namespace()))}
    fields = {f.name: built[f.name] for f in dataclasses.fields(FitConfig) if f.name not in ("nodes", "modality")}
    config = FitConfig(nodes=_nodes(found.nodes), modality=modality, **fields)
    run = {name: found[name] for name in _RUN_FIELDS}
    options = vars(found.dataset_options) if "dataset_options" in found else {}
    return Arguments(config=paper_settings(config) if found.paper_settings else config, options=options, **run)


def _nodes(value: Any) -> dict[str, int]:
    return {"N1": 2} if value is None else parse_nodes(vars(value) if isinstance(value, Namespace) else value)


_RUN_FIELDS = [f.name for f in dataclasses.fields(Arguments) if f.name not in ("config", "options")]
