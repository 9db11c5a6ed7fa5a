"""Pyro programs that know nothing of this package and keep the rule of the direct contraction."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pyro
import pyro.distributions as dist
import torch
from pyro import poutine
from pyro.ops.indexing import Vindex
from torch import Tensor

PARALLEL = {"enumerate": "parallel"}
INDEX = torch.tensor([4, 0, 9, 7, 2])
N_SAMPLES = 12


class Program(NamedTuple):
    """Model, guide, what gradients are taken for, and the options that its ELBO needs."""

    model: Callable[[], Any]
    guide: Callable[[], Any]
    leaves: dict[str, Tensor]
    options: dict[str, Any] = {}


class Numbers:
    """Leaves of a program, made where they are first used."""

    def __init__(self) -> None:
        self.generator = torch.Generator().manual_seed(5)
        self.leaves: dict[str, Tensor] = {}
        self.x = self.random(5)

    def random(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator, dtype=torch.float64)

    def __call__(self, name: str, *shape: int) -> Tensor:
        if name not in self.leaves:
            self.leaves[name] = self.random(*shape).requires_grad_()
        return self.leaves[name]


def data() -> Any:
    return pyro.plate("data", N_SAMPLES, subsample=INDEX)


def cluster(v: Numbers, **infer: Any) -> Tensor:
    return pyro.sample("N", dist.Categorical(logits=v("logits", 3)), infer={**PARALLEL, **infer})


def latent(v: Numbers, n: Tensor) -> Tensor:
    return pyro.sample("z", dist.Normal(v("loc", 3)[n], 0.7))


def observed(v: Numbers, z: Tensor) -> None:
    pyro.sample("x", dist.Normal(v("slope") * z, v("spread").exp()), obs=v.x)


def mixture(v: Numbers) -> None:
    """N -> z -> x, all in one plate."""
    with data():
        observed(v, latent(v, cluster(v)))


def encoder(v: Numbers, name: str = "z") -> Tensor:
    return pyro.sample(name, dist.Normal(v("gain") * v.x + v("shift"), v("width").exp()))


def amortised(v: Numbers) -> None:
    with data():
        encoder(v)


def amortised_with_cluster(v: Numbers, **infer: Any) -> None:
    with data():
        encoder(v)
        pyro.sample("N", dist.Categorical(logits=v("q_logits", 5, 3)), infer={**PARALLEL, **infer})


def program(model: Callable[[Numbers], Any], guide: Callable[[Numbers], Any], **options: Any) -> Callable[[], Program]:
    def make() -> Program:
        numbers = Numbers()
        made = Program(partial(model, numbers), partial(guide, numbers), numbers.leaves, options)
        with poutine.block():
            made.guide(), made.model()
        return made

    return make


def chain(v: Numbers, length: int = 3, emissions: bool = True) -> None:
    """N0 -> N1 -> N2, each with its own emission from z."""
    with data():
        z, state = pyro.sample("z", dist.Normal(0.0, 1.0)), torch.tensor(0)
        for step in range(length):
            logits = Vindex(v(f"transition{step}", 3, 3))[state]
            state = pyro.sample(f"N{step}", dist.Categorical(logits=logits), infer=PARALLEL)
            if emissions:
                pyro.sample(f"x{step}", dist.Normal(z + v(f"emission{step}", 3)[state], 0.8), obs=v.x)


def amortised_with_chain(v: Numbers) -> None:
    with data():
        encoder(v)
        state = torch.tensor(0)
        for step in range(3):
            logits = Vindex(v(f"q_transition{step}", 3, 3))[state]
            state = pyro.sample(f"N{step}", dist.Categorical(logits=logits), infer=PARALLEL)


def masked_where_missing(v: Numbers) -> None:
    with data():
        z = latent(v, cluster(v))
        with poutine.mask(mask=torch.tensor([True, False, True, True, False])):
            observed(v, z)
        with poutine.mask(mask=False):
            pyro.sample("never", dist.Normal(z, 1.0), obs=v.x)


def unclustered(v: Numbers) -> None:
    with data():
        observed(v, pyro.sample("z", dist.Normal(v("loc", 3)[0], 0.7)))


def with_factor(v: Numbers) -> None:
    with data():
        z = latent(v, cluster(v))
        observed(v, z)
        pyro.factor("penalty", -v("weight").exp() * z.square())


def impossible_cluster(v: Numbers) -> None:
    """One outcome has probability zero."""
    with data():
        logits = v("logits", 3) + torch.tensor([0.0, -torch.inf, 0.0])
        observed(v, latent(v, pyro.sample("N", dist.Categorical(logits=logits), infer=PARALLEL)))


def impossible_cluster_in_guide(v: Numbers) -> None:
    with data():
        encoder(v)
        logits = v("q_logits", 5, 3) + torch.tensor([0.0, -torch.inf, 0.0])
        pyro.sample("N", dist.Categorical(logits=logits), infer=PARALLEL)


def rescaled_everywhere(v: Numbers, scale: Any, program: Callable[[Numbers], Any]) -> None:
    with poutine.scale(scale=scale):
        program(v)


def amortised_with_auxiliary(v: Numbers) -> None:
    with data():
        aux = pyro.sample("aux", dist.Normal(v("gain"), 1.0), infer={"is_auxiliary": True})
        pyro.sample("z", dist.Normal(aux * v.x, v("width").exp()))


def independent_of_cluster(v: Numbers) -> None:
    """N has no say in anything else."""
    with data():
        cluster(v)
        observed(v, pyro.sample("z", dist.Normal(0.0, 1.0)))


def cluster_seen_directly(v: Numbers) -> None:
    """N -> z, N -> x <- z: nothing is independent of N."""
    with data():
        n = cluster(v)
        pyro.sample("x", dist.Normal(latent(v, n) + v("offset", 3)[n], 1.0), obs=v.x)


def no_latent(v: Numbers) -> None:
    with data():
        pyro.sample("x", dist.Normal(v("loc", 3)[cluster(v)], 1.0), obs=v.x)


def amortised_with_auxiliary_cluster(v: Numbers) -> None:
    with data():
        encoder(v)
        logits = v("q_logits", 5, 3)
        pyro.sample("aux", dist.Categorical(logits=logits), infer={**PARALLEL, "is_auxiliary": True})


def nothing(v: Numbers) -> None:
    return
