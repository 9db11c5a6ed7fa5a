"""Parameters of model and guide: local to their modules, or in Pyro's store, and all of them trained."""

from __future__ import annotations

import pyro
import pytest
import torch
from pyro.infer import SVI, TraceEnum_ELBO
from small_model import make_batch, make_guide, make_model
from torch import Tensor, nn

from causalpima.guides.guide import Guide
from causalpima.models.batch import Batch
from causalpima.models.program import CausalPIMA, CellSites

both_sites = pytest.mark.parametrize("sites", ["cells", "nodes"])


def unmoved(module: nn.Module, before: dict[str, Tensor]) -> list[str]:
    return [name for name, parameter in module.named_parameters() if torch.equal(parameter, before[name])]


def copy_of(module: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in module.named_parameters()}


def step_locally(model: CausalPIMA, guide: Guide, batch: Batch) -> None:
    with pyro.settings.context(module_local_params=True):
        loss = TraceEnum_ELBO(max_plate_nesting=1)(model, guide)
        optimiser = torch.optim.Adam(loss.parameters(), lr=1e-2)
        loss(batch).backward()
        optimiser.step()


@both_sites
def test_one_local_step_moves_every_parameter_of_both(sites: CellSites) -> None:
    model, guide = make_model(sites), make_guide()
    before = copy_of(model), copy_of(guide)
    step_locally(model, guide, make_batch())
    assert (unmoved(model, before[0]), unmoved(guide, before[1])) == ([], [])
    assert len(pyro.get_param_store()) == 0, "nothing global is left behind"


@pytest.mark.float32
def test_a_step_in_float32_is_finite() -> None:
    model, guide = make_model(), make_guide()
    step_locally(model, guide, make_batch())
    for parameter in [*model.parameters(), *guide.parameters()]:
        assert parameter.dtype == torch.float32
        assert parameter.isfinite().all()


def test_two_models_in_one_process_are_two() -> None:
    first, second = make_model(seed=1), make_model(seed=2)
    guides, batch = (make_guide(1), make_guide(2)), make_batch()
    kept = copy_of(first), copy_of(guides[0])
    before = copy_of(second), copy_of(guides[1])
    torch.manual_seed(9)
    step_locally(second, guides[1], batch)
    assert (unmoved(second, before[0]), unmoved(guides[1], before[1])) == ([], [])
    assert all(torch.equal(parameter, kept[0][name]) for name, parameter in first.named_parameters())
    assert all(torch.equal(parameter, kept[1][name]) for name, parameter in guides[0].named_parameters())
    alone, alone_guide = make_model(seed=2), make_guide(2)
    torch.manual_seed(9)
    step_locally(alone, alone_guide, batch)
    assert all(torch.equal(parameter, copy_of(second)[name]) for name, parameter in alone.named_parameters())
    assert all(torch.equal(parameter, copy_of(guides[1])[name]) for name, parameter in alone_guide.named_parameters())


@both_sites
def test_one_step_of_svi_with_the_global_store_moves_every_parameter_of_both(sites: CellSites) -> None:
    model, guide, batch = make_model(sites), make_guide(), make_batch()
    before = copy_of(model), copy_of(guide)
    svi = SVI(model, guide, pyro.optim.Adam({"lr": 1e-2}), TraceEnum_ELBO(max_plate_nesting=1))
    svi.step(batch)
    assert (unmoved(model, before[0]), unmoved(guide, before[1])) == ([], [])
    assert len(pyro.get_param_store()) == len(before[0]) + len(before[1])
