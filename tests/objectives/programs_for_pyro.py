"""Pyro programs that break the rule of the direct contraction, each in its own way."""

from __future__ import annotations

import pyro
import pyro.distributions as dist
import torch
from foreign_programs import PARALLEL, Numbers, amortised, cluster, data, latent, mixture, observed
from pyro import poutine
from pyro.distributions.testing.rejection_gamma import ShapeAugmentedGamma


def drawn_cluster(v: Numbers, num_samples: int) -> None:
    with data():
        observed(v, latent(v, cluster(v, num_samples=num_samples, expand=True)))


def plates_in_a_row(v: Numbers) -> None:
    mixture(v)
    with pyro.plate("more", 3):
        pyro.sample("y", dist.Normal(v("slope"), 1.0), obs=torch.arange(3.0))


def plates_in_each_other(v: Numbers) -> None:
    with data():
        z = latent(v, cluster(v))
        observed(v, z)
        with pyro.plate("features", 2, dim=-2):
            pyro.sample("y", dist.Normal(z, v("spread").exp()), obs=v.x.expand(2, 5) * 0.3)


def with_global(v: Numbers) -> None:
    theta = pyro.sample("theta", dist.Normal(0.0, 2.0))
    with data():
        observed(v, latent(v, cluster(v)) + theta)


def amortised_with_global(v: Numbers) -> None:
    pyro.sample("theta", dist.Normal(v("theta_loc"), v("theta_width").exp()))
    amortised(v)


def one_site_rescaled(v: Numbers) -> None:
    with data():
        z = latent(v, cluster(v))
        with poutine.scale(scale=0.3):
            observed(v, z)


def cluster_masked(v: Numbers) -> None:
    with data(), poutine.mask(mask=torch.tensor([True, True, False, True, False])):
        observed(v, latent(v, cluster(v)))


def score_function(v: Numbers) -> None:
    with data():
        pyro.sample("z", dist.Normal(v("gain") * v.x, v("width").exp()).has_rsample_(False))


def positive(v: Numbers) -> None:
    with data():
        n = cluster(v)
        z = pyro.sample("z", dist.Gamma(1.0 + v("loc", 3)[n].exp(), 1.0))
        observed(v, z)


def partly_reparametrised(v: Numbers) -> None:
    with data():
        shape = (v("gain") * v.x).exp()
        pyro.sample("z", ShapeAugmentedGamma(shape, v("width").exp().expand(5), boost=1))


def many_draws(v: Numbers) -> None:
    with data():
        pyro.sample("z", dist.Normal(v("gain") * v.x, v("width").exp()), infer={**PARALLEL, "num_samples": 4})


def two_clusters(v: Numbers) -> None:
    """N -> M -> z -> x."""
    with data():
        m = pyro.sample("M", dist.Categorical(logits=v("of_n", 3, 3)[cluster(v)]), infer=PARALLEL)
        observed(v, latent(v, m))


def latent_given_cluster(v: Numbers) -> None:
    with data():
        n = pyro.sample("N", dist.Categorical(logits=v("q_logits", 5, 3)), infer=PARALLEL)
        pyro.sample("z", dist.Normal(v("gain") * v.x + v("shift_of", 3)[n], v("width").exp()))


def no_latent_in_a_square(v: Numbers) -> None:
    with pyro.plate("rows", 5, dim=-2), data():
        pyro.sample("x", dist.Normal(v("loc", 3)[cluster(v)], 1.0), obs=torch.outer(v.x, v.x))
