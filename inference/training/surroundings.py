"""The process around a run: generators, precision and Pyro's settings are its own while it works, then the caller's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TypedDict

import pyro
import torch
from torch import Tensor

from models.torch_state import own_generators

__all__ = [
    "GeneratorState",
    "choose_device",
    "generator_state",
    "restore_generators",
    "seed_generators",
    "surroundings",
]


class GeneratorState(TypedDict):
    """States of torch's generators: `cpu`, and `device` where that is another."""

    cpu: Tensor
    device: Tensor | None


def choose_device(name: str) -> torch.device:
    """A device that is there and computes in double precision.

    Raises:
        ValueError: It is not, or does not.
    """
    try:
        probe = torch.zeros(1, device=torch.device(name), dtype=torch.float64)
        probe.item()  # fails on a device that holds no numbers
    except (RuntimeError, AssertionError, ImportError, TypeError) as error:
        raise ValueError(
            f"device: expected one that this machine has and that computes in double precision, for example cpu, "
            f"got {name!r}"
        ) from error
    return probe.device


@contextmanager
def surroundings(device: torch.device) -> Iterator[None]:
    """What a run needs of the process, put back afterwards whatever happens.

    Inside: torch's generators may be changed, new tensors are float32, gradients are on, Pyro keeps parameters in
    their modules and validates nothing. Threads take turns: all of this belongs to the process.
    """
    with ExitStack() as stack:
        stack.enter_context(own_generators([device] if device.type == "cuda" else []))
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        stack.enter_context(torch.inference_mode(False))  # gradients are on in it, too
        stack.enter_context(pyro.settings.context(module_local_params=True))
        stack.enter_context(pyro.validation_enabled(False))
        torch.set_default_dtype(torch.float32)
        yield


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed the generators that a run on this device draws from, and no others."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


def generator_state(device: torch.device) -> GeneratorState:
    """States of the generators that a run on this device draws from."""
    return {
        "cpu": torch.get_rng_state(),
        "device": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
    }


def restore_generators(state: GeneratorState, device: torch.device) -> None:
    """Put states back; that of a device of another kind is left out."""
    torch.set_rng_state(state["cpu"])
    if state["device"] is not None and device.type == "cuda":
        torch.cuda.set_rng_state(state["device"], device)
