"""Sites that the data set has once, direct contraction against Pyro's own: values and gradients."""

from __future__ import annotations

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro.infer import TraceEnum_ELBO
from torch import Tensor

from causalpima.inference.objectives.enumerated import AnalyticLatentELBO, CollapsedELBO
from causalpima.models.distributions import ComponentNormal

N_DATA, BATCH = 40, 7


class Programs:
    """A mixture with random shares: Dirichlet once, cells enumerated, z drawn."""

    def __init__(self, with_gradient: bool) -> None:
        self.x = torch.randn(BATCH, 2)
        self.scale = torch.tensor(0.7, requires_grad=True)
        self.counts = torch.tensor([3.0, 5.0, 2.0], requires_grad=with_gradient)
        self.loc = torch.randn(3, 2, requires_grad=True)

    @property
    def parameters(self) -> list[Tensor]:
        return [p for p in (self.scale, self.counts, self.loc) if p.requires_grad]

    def model(self) -> None:
        share = pyro.sample("share", dist.Dirichlet(torch.ones(3)))
        with pyro.plate("data", N_DATA, subsample_size=BATCH, dim=-1):
            cell = pyro.sample("N", dist.Categorical(share), infer={"enumerate": "parallel"})
            z = pyro.sample("Z", ComponentNormal(self.loc[cell], torch.ones(3, 2)[cell]))
            pyro.sample("X_a", dist.Normal(z, 0.5).to_event(1), obs=self.x)

    def guide(self) -> None:
        pyro.sample("share", dist.Dirichlet(self.counts))
        with pyro.plate("data", N_DATA, subsample_size=BATCH, dim=-1):
            pyro.sample("Z", ComponentNormal(self.x, self.scale.expand(BATCH, 2)))


@pytest.mark.parametrize("with_gradient", [True, False])
def test_direct_contraction_equals_pyros(with_gradient: bool) -> None:
    programs = Programs(with_gradient)
    found = []
    for elbo in (CollapsedELBO(), CollapsedELBO(direct=False), TraceEnum_ELBO(max_plate_nesting=1)):
        pyro.set_rng_seed(3)
        loss = elbo.differentiable_loss(programs.model, programs.guide)
        found.append((loss, torch.autograd.grad(loss, programs.parameters)))
    for value, gradients in found[1:]:
        assert torch.allclose(found[0][0], value, rtol=0, atol=1e-10)
        assert all(torch.allclose(a, b, rtol=0, atol=1e-8) for a, b in zip(found[0][1], gradients, strict=True))


def test_named_terms_are_those_of_the_samples_alone() -> None:
    programs = Programs(with_gradient=True)
    evaluation = CollapsedELBO().evaluate(programs.model, programs.guide)
    assert evaluation.terms is not None
    assert not torch.allclose(evaluation.elbo, evaluation.terms.total.sum() * N_DATA / BATCH)


def test_sites_without_a_plate_are_not_integrated_with_z() -> None:
    def model() -> None:
        pyro.sample("offset", dist.Normal(0.0, 1.0))
        with pyro.plate("data", N_DATA, subsample_size=BATCH, dim=-1):
            pyro.sample("Z", ComponentNormal(torch.zeros(BATCH, 2), torch.ones(BATCH, 2)))

    def guide() -> None:
        pyro.sample("offset", dist.Normal(0.5, 0.2))
        with pyro.plate("data", N_DATA, subsample_size=BATCH, dim=-1):
            pyro.sample("Z", ComponentNormal(torch.zeros(BATCH, 2), torch.ones(BATCH, 2)))

    evaluation = AnalyticLatentELBO().evaluate(model, guide)
    assert evaluation.terms is not None
    assert torch.allclose(evaluation.terms.total, torch.zeros(BATCH))
