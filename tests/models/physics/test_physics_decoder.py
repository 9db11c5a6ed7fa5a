"""Physics decoders keep the interface of decoders, in the unit of the data and on the scale of the model."""

from __future__ import annotations

import math

import pytest
import torch
from planted_laws import PLANTED, PlantedLaw, every_law
from torch import Tensor
from torch.distributions import Normal

from causalpima.models.batch import Modality, Standardisation
from causalpima.models.decoders.base import DecoderVariance
from causalpima.models.decoders.physics.decoder import PhysicsDecoder
from causalpima.models.decoders.physics.laws import Linear

N_CELLS, LATENT = 4, 2
SHAPES = {
    "plain": ((5,), ()),
    "enumerated": ((5,), (N_CELLS, 1)),
    "two enumerated sites": ((5,), (2, 2, 1)),
    "drawn": ((5,), (5,)),
    "one sample, enumerated": ((1,), (N_CELLS, 1)),
    "parallel draws": ((3, 5), (3, 5)),
    "one cell per draw": ((3, 5), (3, 1)),
    "parallel draws, enumerated": ((3, 5), (N_CELLS, 1, 1)),
    "enumerated latent": ((N_CELLS, 5), (N_CELLS, 1)),
}
shapes = pytest.mark.parametrize(("batch", "cells"), SHAPES.values(), ids=SHAPES.keys())
sources = pytest.mark.parametrize("source", ["cell", "latent", "both"])


def arguments(batch: tuple[int, ...], cells: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    return torch.randn(*batch, LATENT), torch.randint(N_CELLS, cells)


def line(standardisation: Standardisation, position: Tensor, n_cells: int = 1) -> PhysicsDecoder:
    modality = Modality("curve", position.shape, "curve", position, standardisation=standardisation)
    return PhysicsDecoder(Linear(), modality, n_cells, DecoderVariance("fixed", 0.3), LATENT)


@sources
@shapes
def test_batch_shape_is_that_of_the_interface(source: str, batch: tuple[int, ...], cells: tuple[int, ...]) -> None:
    decoder, (latent, cell) = PLANTED["ring-down"].decoder(N_CELLS, source=source), arguments(batch, cells)
    distribution = decoder(latent, cell)
    expected = torch.broadcast_shapes(batch, cells) if decoder.depends_on_cell else torch.Size(batch)
    assert distribution.batch_shape == expected
    assert distribution.event_shape == decoder.event_shape
    value = torch.randn(batch[-1], *decoder.event_shape)
    reference = Normal(distribution.mean, decoder.variance.scale()).log_prob(value).sum(-1)
    torch.testing.assert_close(distribution.log_prob(value), reference)


@sources
@shapes
def test_one_sample_at_a_time_gives_the_same(source: str, batch: tuple[int, ...], cells: tuple[int, ...]) -> None:
    decoder, (latent, cell) = PLANTED["power"].decoder(N_CELLS, source=source), arguments(batch, cells)
    mean = decoder(latent, cell).mean
    whole = mean.shape[:-1]
    rows = latent.expand(*whole, LATENT).reshape(-1, LATENT)
    chosen = (cell if decoder.depends_on_cell else torch.zeros((), dtype=torch.long)).expand(whole).reshape(-1)
    by_loop = torch.stack([decoder(row, one).mean for row, one in zip(rows, chosen, strict=True)])
    torch.testing.assert_close(mean, by_loop.reshape(mean.shape))


@every_law
@sources
def test_gradients_reach_every_parameter(planted: PlantedLaw, source: str) -> None:
    decoder = planted.decoder(N_CELLS, source=source)
    latent, cell = arguments((6,), (N_CELLS, 1))
    value = torch.randn(6, *decoder.event_shape)
    decoder(latent, cell).log_prob(value).sum().backward()
    for name, parameter in decoder.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert (parameter.grad != 0).any(), name


@every_law
def test_the_mean_is_the_law_on_the_scale_of_the_model(planted: PlantedLaw) -> None:
    decoder = planted.decoder(N_CELLS)
    with torch.no_grad():
        decoder.table.copy_(decoder.curve.parameters_of_law.to_unconstrained(torch.as_tensor(planted.truth_array)))
    mean = decoder(torch.zeros(LATENT), torch.tensor(1)).mean
    expected = planted.modality().standardisation.apply(torch.as_tensor(planted.curve()))
    torch.testing.assert_close(mean, expected)
    torch.testing.assert_close(decoder.physical()[2], torch.as_tensor(planted.truth_array))


@every_law
@pytest.mark.float32
def test_single_precision_stays_single_and_recovers(planted: PlantedLaw) -> None:
    decoder = planted.decoder(2)
    mean = planted.modality().standardisation.apply(torch.as_tensor(planted.curve())).float().expand(2, -1)
    decoder.update_cells(mean, torch.ones_like(mean))
    assert decoder.table.dtype == torch.float32
    distribution = decoder(torch.randn(5, LATENT), torch.tensor([[0], [1]]))
    assert distribution.mean.dtype == torch.float32
    torch.testing.assert_close(distribution.mean[:, 0], mean, atol=1e-3, rtol=1e-3)


@every_law
def test_a_saved_decoder_is_the_same(planted: PlantedLaw) -> None:
    first, second = planted.decoder(N_CELLS, source="both"), planted.decoder(N_CELLS, source="both")
    second.load_state_dict(first.state_dict())
    latent, cell = arguments((5,), (N_CELLS, 1))
    assert torch.equal(first(latent, cell).mean, second(latent, cell).mean)


def test_cells_begin_near_the_start_and_apart() -> None:
    decoder = PLANTED["two pieces"].decoder(N_CELLS)
    off = decoder.table - decoder.curve.parameters_of_law.start()
    assert off.abs().max() < 0.6
    assert decoder.table.unique(dim=0).shape[0] == N_CELLS


def test_a_network_on_z_begins_near_the_start() -> None:
    decoder = PLANTED["two pieces"].decoder(N_CELLS, source="latent")
    unconstrained = decoder.network(torch.randn(50, LATENT))
    assert (unconstrained - decoder.curve.parameters_of_law.start()).abs().max() < 0.5
    assert unconstrained.std(0).min() > 0


def test_cells_that_see_the_same_data_part_by_gradient() -> None:
    """Two groups of samples, responsibilities from the likelihood: two cells must not stay on top of each other."""
    planted = PLANTED["line"]
    decoder, position = planted.decoder(2), torch.as_tensor(planted.position)
    apply = planted.modality().standardisation.apply
    values = apply(torch.stack([2 * position + 1, -2 * position + 5]).repeat(20, 1)) + 0.1 * torch.randn(40, 20)
    optimiser = torch.optim.Adam([decoder.table], lr=0.05)
    for _ in range(400):
        optimiser.zero_grad()
        loss = -torch.logsumexp(decoder(torch.zeros(40, LATENT), torch.tensor([[0], [1]])).log_prob(values), 0).mean()
        loss.backward()
        optimiser.step()
    slopes = decoder.physical()[:, 0].sort().values
    torch.testing.assert_close(slopes, torch.tensor([-2.0, 2.0]), atol=0.15, rtol=0)


def test_means_that_are_not_positive_have_a_finite_logarithm() -> None:
    standardisation = Standardisation(loc=1.0, scale=0.5, transform="log")
    decoder = line(standardisation, torch.linspace(-5, 5, 11))
    with torch.no_grad():
        decoder.table.copy_(decoder.curve.parameters_of_law.to_unconstrained(torch.tensor([[1.0, 0.0]])))
    mean = decoder(torch.zeros(LATENT), torch.tensor(0)).mean
    assert mean[:6].tolist() == pytest.approx([-10.0] * 6)  # ten standard deviations below the centre
    torch.testing.assert_close(mean[6:], (torch.arange(1.0, 6.0).log() - 1) / 0.5)
    (gradient,) = torch.autograd.grad(mean.sum(), decoder.table)
    assert torch.isfinite(gradient).all()
    assert (gradient != 0).all()


def test_curves_over_decades_are_fitted_on_their_own_scale() -> None:
    knee = Standardisation(loc=2.0, scale=1.5, transform="asinh", knee=0.1)
    position = torch.linspace(0, 100, 30)
    decoder = line(knee, position)
    mean = knee.apply(0.7 * position - 3).unsqueeze(0)
    decoder.update_cells(mean, torch.ones_like(mean))
    torch.testing.assert_close(decoder.physical(), torch.tensor([[0.7, -3.0]]), atol=1e-7, rtol=1e-7)


def test_the_update_raises_the_expected_log_likelihood() -> None:
    planted = PLANTED["three pieces"]
    decoder, (values, observed) = planted.decoder(N_CELLS), planted.draw(1, 30, seed=3, has_gaps=True)
    share = torch.softmax(torch.randn(30, N_CELLS), -1)

    def expected() -> Tensor:
        distribution = decoder(torch.zeros(30, LATENT), torch.arange(N_CELLS).unsqueeze(-1))
        return (share.T * distribution.restricted(observed[0]).log_prob(values[0])).sum()

    weight = share.T @ observed[0].double()
    before = expected()
    decoder.update_cells(share.T @ values[0] / weight, weight)
    best = expected()
    assert best > before
    (gradient,) = torch.autograd.grad(best, decoder.table)
    assert gradient.abs().max() < 1e-4 * best.abs()


@pytest.mark.parametrize("source", ["latent", "both"])
def test_parameters_from_z_are_left_to_gradients(source: str) -> None:
    decoder = PLANTED["line"].decoder(N_CELLS, source=source)
    before = {name: value.clone() for name, value in decoder.state_dict().items()}
    mean = torch.randn(N_CELLS, 20)
    decoder.update_cells(mean, torch.ones_like(mean))
    assert all(torch.equal(value, before[name]) for name, value in decoder.state_dict().items())


def test_variance_is_observed_and_reported() -> None:
    decoder, latent = PLANTED["line"].decoder(1), torch.zeros(50, LATENT)
    values = decoder(latent, torch.zeros(50, dtype=torch.long)).mean.detach() + 0.2 * torch.randn(50, 20)
    log_likelihood = decoder(latent, torch.zeros(50, dtype=torch.long)).log_prob(values).sum().detach()
    error = (values - decoder(latent, torch.zeros(50, dtype=torch.long)).mean).square().mean().item()
    decoder.observe(log_likelihood, torch.tensor(1000.0))
    assert decoder.variance.training_variance().item() == pytest.approx(error)
    again = decoder(latent, torch.zeros(50, dtype=torch.long)).log_prob(values).sum().detach()
    decoder.report(again, torch.tensor(1000.0))
    assert decoder.variance.scale().item() == pytest.approx(math.sqrt(error))


def test_physical_parameters_per_cell_need_cells() -> None:
    with pytest.raises(ValueError, match='source: expected "cell" or "both" for parameters per cell, got "latent"'):
        PLANTED["line"].decoder(N_CELLS, source="latent").physical()
