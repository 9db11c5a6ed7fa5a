"""A finished fit, put together again from its weights and its description, without the data."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from causalpima.guides.guide import Guide
from causalpima.inference.clusters.names import outcome_names
from causalpima.inference.store.input_files import reason_of
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.build import Supplied, build
from causalpima.inference.training.checkpoint import CheckpointError, load_checkpoint
from causalpima.inference.training.components import Components
from causalpima.inference.training.config import FitConfig
from causalpima.inference.training.prepared_run import RunDescription
from causalpima.inference.training.state import choose_device, surroundings
from causalpima.models.batch import Modality
from causalpima.models.program import CausalPIMA
from causalpima.models.user_code import on_word_of_files

__all__ = [
    "FittedRun",
    "check_finished",
    "described",
    "load_run",
    "rebuild",
]


@dataclass(frozen=True)
class FittedRun:
    """Model and guide of a finished fit.

    Attributes:
        model: The generative model, in evaluation mode, with the variances that are reported.
        guide: The guide, with its unimodal encoders where there are any.
        description: The configuration, and what was known of the data.
    """

    model: CausalPIMA
    guide: Guide
    description: RunDescription

    @property
    def config(self) -> FitConfig:
        """The configuration."""
        return self.description.config

    @property
    def modalities(self) -> Mapping[str, Modality]:
        """What is known of every modality."""
        return self.description.modalities

    @property
    def outcome_names(self) -> tuple[tuple[str, ...], ...]:
        """Names of the outcomes of every node."""
        return self.description.outcome_names or outcome_names(self.config.nodes, {})

    @property
    def device(self) -> torch.device:
        """Where model and guide are."""
        return next(self.model.graph.buffers()).device


def load_run(
    path: Path | str,
    decoders: Supplied | None = None,
    device: str = "cpu",
    components: Components | None = None,
    allow_code: bool = False,
) -> FittedRun:
    """Load a finished run from its folder.

    No code is executed but that of components which it names as `module:Class`, and that only if it is allowed, or the
    same file was run before in a fit of this user.

    Args:
        path: The run folder.
        decoders: The laws or decoders that the run was given as objects, once more.
        device: Where to put it.
        components: Other components that the run was given as objects, once more.
        allow_code: Import what the run names as `module:Class`: for runs whose maker you trust.

    Raises:
        ValueError: No run, code that is not allowed, a run that is not finished or diverged, one of an older version of
            the program, or one that needs objects which are not given.
    """
    folder = RunFolder(path)
    folder.read_config()
    check_finished(folder)
    checkpoint = load_checkpoint(folder.final)
    try:
        with on_word_of_files(allow_code):
            return rebuild(described(checkpoint.state), checkpoint.weights, decoders, device, components)
    except (RuntimeError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise CheckpointError(
            f"{checkpoint.path}: expected the weights of the model that it describes, got others; it was written by "
            "another version of this program, use that one"
        ) from error
    except ValueError as error:
        raise ValueError(f"{folder.path}: {error}") from error


def check_finished(folder: RunFolder) -> None:
    """Refuse a folder whose run has no final weights.

    Raises:
        ValueError: It is not finished, or diverged.
    """
    if folder.final.is_dir():
        return
    if folder.is_complete and folder.read_summary()["status"] == "diverged":
        raise ValueError(f"{folder.path}: expected a run that found something, got one that diverged; fit again")
    raise ValueError(
        f"{folder.path}: expected a finished run, got one that is unfinished; go on with "
        f"python -m inference.svi --resume {shlex.quote(str(folder.path))}"
    )


def described(state: Mapping[str, Any]) -> RunDescription:
    """The description in the state of a final checkpoint.

    Raises:
        ValueError: There is none, for it was written by an older version of the program.
    """
    if "description" not in state:
        raise ValueError(
            "expected a run that says what its data looked like, got one of an older version of this program; fit again"
        )
    with surroundings(torch.device("cpu")):
        try:
            return RunDescription.from_plain(state["description"])
        except (LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError) as error:
            raise ValueError(
                f"expected a description of a fit in the final checkpoint, got something else ({reason_of(error)}); "
                "restore it from a copy, or fit again"
            ) from error


def rebuild(
    description: RunDescription,
    weights: Mapping[str, Tensor],
    decoders: Supplied | None = None,
    device: str = "cpu",
    components: Components | None = None,
) -> FittedRun:
    """Model and guide from a description and weights.

    Args:
        description: Of the fit.
        weights: By name, as `FitResult.weights` has them.
        decoders: The laws or decoders that were passed as objects.
        device: Where to put them.
        components: Other components that were passed as objects.

    Raises:
        ValueError: Objects are missing, or others are given.
    """
    supplied = dict(decoders or {})
    _check_supplied(description, supplied)
    _check_components(description, components or Components())
    place = choose_device(device)
    covariates = torch.zeros(description.n_covariates) if description.covariate_levels else None
    with surroundings(place):
        model, guide = build(description.config, description.modalities, supplied, covariates, components)
        if any(name.startswith("guide.unimodal.") for name in weights):
            guide.copy_encoders()
        modules = nn.ModuleDict({"model": model, "guide": guide})
        modules.load_state_dict({name: value for name, value in weights.items() if not name.startswith("stand_ins.")})
        modules.to(place).eval().requires_grad_(False)
    return FittedRun(model, guide, description)


def _check_supplied(description: RunDescription, supplied: Supplied) -> None:
    missing = sorted(set(description.supplied) - set(supplied))
    if missing:
        name = missing[0]
        raise ValueError(
            f"decoders: expected the object of class {description.supplied[name]} that modality {name!r} was fitted "
            f"with, got none; in Python, load_run(path, decoders={{{name!r}: ...}}) takes it"
        )
    odd = sorted(set(supplied) - set(description.supplied))
    if odd:
        raise ValueError(f"decoders: expected none for {odd[0]!r}, whose decoder the run names itself; leave it out")


def _check_components(description: RunDescription, components: Components) -> None:
    given = components.by_setting()
    missing = sorted(set(description.components) - set(given))
    if missing:
        raise ValueError(
            f"components: expected the object {description.components[missing[0]]} in place of {missing[0]}, which the "
            "run was fitted with, got none; in Python, load_run(path, components=Components(...)) takes it"
        )
    odd = sorted(set(given) - set(description.components))
    if odd:
        raise ValueError(f"components: expected none in place of {odd[0]}, which the run names itself; leave it out")
