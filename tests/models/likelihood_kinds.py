"""Every likelihood with values drawn for it and its closed form, for the tables of laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.distributions as td
from torch import Tensor

from causalpima.models.decoders.likelihoods import (
    BernoulliLikelihood,
    CategoricalLikelihood,
    Likelihood,
    NegativeBinomialLikelihood,
    PoissonLikelihood,
    StudentTLikelihood,
)

K = 4
DISPERSION, SCALE, DEGREES = 0.3, 0.7, 4.0


class Kind(NamedTuple):
    """A likelihood with what is known of it.

    Attributes:
        make: The likelihood, from the shape of an event.
        draw: Values of a shape.
        closed: Distribution of every element from the outputs `[..., P]`, by `torch.distributions`.
        outside: What no sample can hold.
    """

    make: Callable[[tuple[int, ...]], Likelihood]
    draw: Callable[[tuple[int, ...]], Tensor]
    closed: Callable[[Tensor], td.Distribution]
    outside: float


def counts(shape: tuple[int, ...]) -> Tensor:
    return torch.poisson(torch.full(shape, 3.0))


def codes(shape: tuple[int, ...]) -> Tensor:
    return torch.randint(K, shape).to(torch.get_default_dtype())


def negative_binomial(outputs: Tensor) -> td.NegativeBinomial:
    mean = (outputs[..., 0] + 1.2).exp()
    return td.NegativeBinomial(torch.tensor(1 / DISPERSION), probs=DISPERSION * mean / (1 + DISPERSION * mean))


def per_element(shape: tuple[int, ...]) -> Likelihood:
    return NegativeBinomialLikelihood(torch.full(shape, 1.2), DISPERSION, shape)


KINDS = {
    "bernoulli": Kind(
        lambda _: BernoulliLikelihood(),
        lambda shape: torch.bernoulli(torch.full(shape, 0.4)),
        lambda outputs: td.Bernoulli(outputs[..., 0].sigmoid()),
        0.5,
    ),
    "categorical": Kind(
        lambda _: CategoricalLikelihood(K), codes, lambda outputs: td.Categorical(outputs.softmax(-1)), 99.0
    ),
    "poisson": Kind(
        lambda _: PoissonLikelihood(0.8), counts, lambda outputs: td.Poisson((outputs[..., 0] + 0.8).exp()), -1.0
    ),
    "negative binomial": Kind(lambda _: NegativeBinomialLikelihood(1.2, DISPERSION), counts, negative_binomial, -1.0),
    "negative binomial, a dispersion per element": Kind(per_element, counts, negative_binomial, -1.0),
    "Student t": Kind(
        lambda _: StudentTLikelihood(SCALE),
        lambda shape: torch.randn(shape),
        lambda outputs: td.StudentT(DEGREES, outputs[..., 0], SCALE),
        torch.inf,
    ),
    "Student t, learned degrees": Kind(
        lambda _: StudentTLikelihood(SCALE, DEGREES, learned=True),
        lambda shape: torch.randn(shape),
        lambda outputs: td.StudentT(DEGREES, outputs[..., 0], SCALE),
        torch.inf,
    ),
}
