"""The ELBO classes as users of Pyro meet them: SVI, marginals, options, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pyro
import pyro.distributions as dist
import pytest
import torch
from foreign_programs import Numbers, amortised, data, mixture, program
from ladder_example import CASES, build
from pyro import poutine
from pyro.infer import SVI, TraceEnum_ELBO
from torch import Tensor

from causalpima.inference.objectives.enumerated import AnalyticLatentELBO, CollapsedELBO, make_elbo
from causalpima.models.distributions import ComponentNormal


def two_steps(elbo: TraceEnum_ELBO) -> tuple[list[float], dict[str, Tensor]]:
    """Losses and parameters as users of Pyro have them: SVI, and one parameter store."""
    example = build(CASES["everything"])
    pyro.clear_param_store()
    with pyro.settings.context(module_local_params=False):
        svi = SVI(example.model, example.guide(), pyro.optim.SGD({"lr": 1e-3}), loss=elbo)
        pyro.set_rng_seed(2)
        losses = [svi.step(example.batch) for _ in range(2)]
    return losses, {name: value.detach().clone() for name, value in pyro.get_param_store().items()}


def test_parameters_in_the_store_move_as_with_pyro() -> None:
    expected_losses, expected = two_steps(TraceEnum_ELBO(max_plate_nesting=1))
    losses, parameters = two_steps(CollapsedELBO())
    torch.testing.assert_close(losses, expected_losses, rtol=0, atol=1e-10)
    torch.testing.assert_close(parameters, expected, rtol=0, atol=1e-12)
    for name, start in build(CASES["everything"]).model.named_parameters():
        assert torch.equal(parameters[f"causal_pima$$${name}"], start) == ("assay" in name)


def test_marginals_and_posterior_draws_of_pyro_are_there_too() -> None:
    example, answers = build(CASES["full, a site per node"]), []
    for elbo in (TraceEnum_ELBO(max_plate_nesting=1), CollapsedELBO()):
        pyro.set_rng_seed(4)
        marginals = elbo.compute_marginals(example.model, example.guide(), example.batch)
        draw = poutine.trace(elbo.sample_posterior).get_trace(example.model, example.guide(), example.batch)
        assert list(marginals) == ["N_N2", "N_N1"]
        answers.append({name: (marginals[name].logits, draw.nodes[name]["value"]) for name in marginals})
    torch.testing.assert_close(*answers)


def outside_its_plate(v: Numbers) -> None:
    pyro.sample("z", dist.Normal(v("gain") * v.x, 1.0))


def another_name(v: Numbers) -> None:
    with data():
        pyro.sample("other", dist.Normal(v("gain") * v.x, 1.0))


@pytest.mark.parametrize("direct", [True, False])
def test_programs_that_pyro_refuses_are_refused(direct: bool) -> None:
    elbo = CollapsedELBO(direct=direct)
    foreign = program(mixture, outside_its_plate)()
    with pytest.raises(ValueError, match="invalid log_prob shape"):
        elbo.loss(foreign.model, foreign.guide)
    foreign = program(mixture, another_name)()
    with pytest.raises(UserWarning, match="Found non-auxiliary vars in guide but not model"):
        elbo.loss(foreign.model, foreign.guide)


def component_normal(name: str, loc: Tensor, scale: Tensor) -> Callable[..., None]:
    def program() -> None:
        with pyro.plate("data", 5):
            pyro.sample(name, ComponentNormal(loc, scale))

    return program


@pytest.mark.parametrize(
    ("guide", "got"),
    [
        (program(mixture, amortised)().guide, "got Normal and ComponentNormal"),
        (
            component_normal("other", torch.zeros(5, 2), torch.ones(5, 2)),
            "site 'other'.*got ComponentNormal and NoneType",
        ),
        (component_normal("z", torch.zeros(5, 2), torch.eye(2).expand(5, 2, 2)), "expected a diagonal ComponentNormal"),
    ],
)
def test_the_analytic_elbo_refuses_what_it_cannot_integrate(guide: Callable[..., None], got: str) -> None:
    model = component_normal("z", torch.zeros(5, 2), torch.ones(5, 2))
    with pyro.validation_enabled(False), pytest.raises(ValueError, match=got):
        AnalyticLatentELBO().loss(model, guide)


def test_options_of_pyro_arrive() -> None:
    assert CollapsedELBO().max_plate_nesting == 1
    elbo = make_elbo("paper", num_particles=2, max_plate_nesting=3)
    assert isinstance(elbo, AnalyticLatentELBO)
    assert (elbo.num_particles, elbo.max_plate_nesting) == (2, 3)
    assert not make_elbo("collapsed", direct=False).direct


def test_nothing_to_differentiate_is_a_number_still() -> None:
    foreign = program(mixture, amortised)()
    pyro.set_rng_seed(8)
    with torch.no_grad():
        value = CollapsedELBO().loss_and_grads(foreign.model, foreign.guide)
    pyro.set_rng_seed(8)
    assert value == pytest.approx(CollapsedELBO().loss(foreign.model, foreign.guide), abs=1e-10)
    assert all(leaf.grad is None for leaf in foreign.leaves.values())


def test_a_loss_that_is_no_number_warns() -> None:
    foreign = program(mixture, amortised)()
    foreign.leaves["slope"].data.fill_(torch.nan)
    with pyro.validation_enabled(False), pytest.warns(UserWarning, match="Encountered NaN: loss"):
        CollapsedELBO().loss(foreign.model, foreign.guide)
