"""The process around a run: everything that is the caller's comes back, whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyro
import pytest
import torch

from causalpima.inference.training.state import (
    choose_device,
    generator_state,
    restore_generators,
    seed_generators,
    surroundings,
)

CPU = torch.device("cpu")


def of_the_caller() -> dict[str, Any]:
    """All that a run might disturb; beartype, which the tests run with, draws from Python's own generator."""
    return {
        "torch": torch.get_rng_state().tolist(),
        "numpy": str(np.random.get_state()),
        "dtype": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "pyro": pyro.settings.get(),
        "parameters": {name: float(value) for name, value in pyro.get_param_store().items()},
        "threads": torch.get_num_threads(),
    }


@contextmanager
def strange_caller() -> Iterator[None]:
    """Validation on, module-local parameters off, no gradients, a parameter in the store."""
    pyro.param("x", torch.tensor(3.0))
    with torch.no_grad(), pyro.settings.context(module_local_params=False), pyro.validation_enabled(True):
        yield


@pytest.mark.parametrize("error", [None, ValueError("x"), KeyboardInterrupt()])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_everything_comes_back(error: BaseException | None, dtype: torch.dtype) -> None:
    default = torch.get_default_dtype()
    with strange_caller():
        torch.set_default_dtype(dtype)
        before = of_the_caller()
        try:
            with surroundings(CPU):
                seed_generators(1, CPU)
                torch.rand(5)
                assert torch.get_default_dtype() == torch.float32
                assert torch.is_grad_enabled()
                assert pyro.settings.get("module_local_params")
                assert not pyro.settings.get("validate_infer")
                if error is not None:
                    raise error
        except (ValueError, KeyboardInterrupt):
            pass
        assert of_the_caller() == before
        torch.set_default_dtype(default)


def test_gradients_even_in_inference_mode() -> None:
    with torch.inference_mode(), surroundings(CPU):
        weight = torch.ones(2, requires_grad=True)
        weight.sum().backward()
        assert weight.grad is not None


def test_generators_go_on_where_they_were() -> None:
    with surroundings(CPU):
        seed_generators(7, CPU)
        state = generator_state(CPU)
        drawn = torch.rand(3)
        restore_generators(state, CPU)
        assert torch.equal(torch.rand(3), drawn)
        seed_generators(7, CPU)
        assert torch.equal(torch.rand(3), drawn)


def test_the_cpu_is_there() -> None:
    assert choose_device("cpu") == CPU


@pytest.mark.parametrize("name", ["foo", "", "meta", "cuda:99", "xla", "mps:0", "cpu cpu", None, 3.5])
def test_devices_that_are_not_there(name: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^device: expected one that this machine has .*, for example cpu, got "
    ) as error:
        choose_device(name)
    assert "\n" not in str(error.value)
