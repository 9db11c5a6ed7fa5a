"""Two fits in threads of one process: as if one came after the other, and torch is left as it was."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
import torch
from tiny_fits import settings, tiny_samples
from torch import Tensor

from causalpima.inference.run import Run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


def weights(seed: int) -> dict[str, Tensor]:
    run = Run(tiny_samples(), settings(seed=seed))
    run.train()
    return run.weights()


def test_threads_fit_what_they_would_alone() -> None:
    torch.manual_seed(7)
    before, dtype = torch.get_rng_state(), torch.get_default_dtype()
    alone = [weights(0), weights(1)]
    together = Barrier(2)

    def at_once(seed: int) -> dict[str, Tensor]:
        together.wait()
        return weights(seed)

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(at_once, (0, 1)))
    for one, other in zip(alone, found, strict=True):
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_default_dtype() == dtype


def test_generators_are_taken_over_in_one_place() -> None:
    found = [
        str(path.relative_to(ROOT))
        for package in ("models", "guides", "inference", "examples")
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"\bfork_rng\(", path.read_text(encoding="utf-8"))
    ]
    assert found == ["models/gaussian.py"], "elsewhere, two threads would put back each other's generators"
