"""Uncertainty of physical parameters: closed forms, groups, batches, what cannot be known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from planted_laws import PLANTED, PlantedLaw, every_law
from scipy import stats
from torch import Tensor

from causalpima.models.batch import Modality
from causalpima.models.decoders.base import DecoderVariance
from causalpima.models.decoders.physics.decoder import PhysicsDecoder
from causalpima.models.decoders.physics.laws import Linear, Peaks, PiecewiseLinear
from causalpima.models.decoders.physics.uncertainty import EstimateAccumulator

N_CELLS = 3


def soft_responsibilities(n_samples: int) -> Tensor:
    return torch.softmax(2 * torch.randn(n_samples, N_CELLS), -1)


def mixed_data(planted: PlantedLaw, n_samples: int = 40) -> tuple[Tensor, Tensor, Tensor]:
    values, observed = planted.draw(1, n_samples, seed=7, has_gaps=True)
    return values[0], observed[0], soft_responsibilities(n_samples)


def fit(decoder: PhysicsDecoder, values: Tensor, observed: Tensor, share: Tensor) -> None:
    weight = share.T @ observed.double()
    decoder.update_cells(share.T @ values / weight.clamp(min=1e-9), weight)


def fitted_line(values: Tensor, share: Tensor, position: Tensor) -> PhysicsDecoder:
    decoder = PhysicsDecoder(
        Linear(), Modality("curve", position.shape, "curve", position), N_CELLS, DecoderVariance(), 2
    )
    fit(decoder, values, torch.ones_like(values, dtype=torch.bool), share)
    return decoder


def test_a_line_is_that_of_weighted_regression_with_a_clustered_sandwich() -> None:
    # By hand, sample by sample, in the parameters themselves (no unconstrained scale, no Jacobian).
    position = torch.linspace(-1, 3, 9)
    values = 2 * position - 1 + torch.randn(25, 9) + torch.randn(25, 1)
    share = soft_responsibilities(25)
    decoder = fitted_line(values, share, position)
    accumulator = EstimateAccumulator(decoder)
    accumulator.add(values, None, share)
    estimates = accumulator.estimate(0.9)
    design = torch.stack([position, torch.ones(9)], -1)
    for cell in range(N_CELLS):
        gamma = share[:, cell]
        bread = gamma.sum() * design.T @ design
        coefficients = torch.linalg.solve(bread, design.T @ (gamma @ values))
        scores = gamma[:, None] * ((values - design @ coefficients) @ design)
        n_groups = gamma.sum() ** 2 / gamma.square().sum()
        covariance = n_groups / (n_groups - 1) * torch.linalg.solve(bread, scores.T @ scores) @ bread.inverse()
        error = covariance.diagonal().sqrt()
        half = stats.t.ppf(0.95, n_groups - 1) * error
        np.testing.assert_allclose(estimates.value[cell], coefficients, rtol=1e-7)
        np.testing.assert_allclose(estimates.standard_error[cell], error, rtol=1e-6)
        np.testing.assert_allclose(estimates.lower[cell], coefficients - half, rtol=1e-6)
        np.testing.assert_allclose(estimates.upper[cell], coefficients + half, rtol=1e-6)
        band = stats.t.ppf(0.95, n_groups - 1) * torch.einsum("dp,pq,dq->d", design, covariance, design).sqrt()
        np.testing.assert_allclose(estimates.curve[cell], design @ coefficients, rtol=1e-6)
        np.testing.assert_allclose(estimates.curve_upper[cell] - estimates.curve[cell], band, rtol=1e-6)
        assert estimates.effective_samples[cell] == pytest.approx(n_groups)


def test_gaps_leave_a_regression_over_what_was_measured() -> None:
    position = torch.linspace(-1, 3, 9)
    values, observed = 2 * position - 1 + torch.randn(25, 9), torch.rand(25, 9) > 0.4
    decoder = PhysicsDecoder(Linear(), Modality("curve", position.shape, "curve", position), 1, DecoderVariance(), 2)
    fit(decoder, torch.where(observed, values, 0.0), observed, torch.ones(25, 1))
    accumulator = EstimateAccumulator(decoder)
    accumulator.add(values, observed, torch.ones(25, 1))
    sample, element = observed.nonzero(as_tuple=True)
    design, target = torch.stack([position[element], torch.ones(len(element))], -1), values[observed]
    coefficients = torch.linalg.lstsq(design, target.unsqueeze(-1)).solution.squeeze(-1)
    rows = (target - design @ coefficients).unsqueeze(-1) * design
    scores = torch.zeros(25, 2).index_add(0, sample, rows)
    bread = (design.T @ design).inverse()
    errors = (25 / 24 * bread @ scores.T @ scores @ bread).diagonal().sqrt()
    np.testing.assert_allclose(accumulator.estimate().standard_error[0], errors, rtol=1e-6)


def test_one_curve_per_sample_gives_the_standard_error_of_a_mean() -> None:
    """With equal designs a line fitted to the mean is the mean of the lines fitted to each sample."""
    position = torch.linspace(0, 2, 7)
    values = position + torch.randn(12, 7) + 2 * torch.randn(12, 1)
    share = torch.zeros(12, N_CELLS)
    share[:, 1] = 1
    accumulator = EstimateAccumulator(fitted_line(values, share, position))
    accumulator.add(values, None, share)
    estimates = accumulator.estimate()
    lines = np.polyfit(position.numpy(), values.numpy().T, 1)
    np.testing.assert_allclose(estimates.standard_error[1], stats.sem(lines, axis=1), rtol=1e-6)
    interval = stats.t.interval(0.95, 11, lines.mean(1), stats.sem(lines, axis=1))
    np.testing.assert_allclose([estimates.lower[1], estimates.upper[1]], interval, rtol=1e-6)


@every_law
def test_errors_are_those_of_a_grouped_jackknife(planted: PlantedLaw) -> None:
    """Leaving out one sample at a time: the same to first order, for laws that are not linear too."""
    n_samples = 40
    values, observed = planted.draw(1, n_samples, seed=5)
    left_in = ~torch.eye(n_samples, dtype=torch.bool)
    mean = torch.stack([values[0, rows].mean(0) for rows in (torch.ones(n_samples, dtype=torch.bool), *left_in)])
    decoder = planted.decoder(n_samples + 1)
    decoder.update_cells(mean, torch.full_like(mean, 40.0))
    accumulator = EstimateAccumulator(decoder)
    accumulator.add(values[0], observed[0], torch.eye(n_samples + 1)[:1].expand(n_samples, -1))
    left_out = decoder.physical()[1:].numpy()
    jackknife = np.sqrt((n_samples - 1) * left_out.var(0))
    np.testing.assert_allclose(accumulator.estimate().standard_error[0], jackknife, rtol=0.12)


@every_law
def test_batches_in_any_order_give_the_same_intervals_around_estimates_and_inside_bounds(planted: PlantedLaw) -> None:
    decoder, (values, observed, share) = planted.decoder(N_CELLS), mixed_data(planted, 6)
    fit(decoder, values, observed, share)
    whole, parts = EstimateAccumulator(decoder), EstimateAccumulator(decoder)
    whole.add(values, observed, share)
    for rows in torch.randperm(6).split(4):
        parts.add(values[rows], observed[rows], share[rows])
    estimates, of_parts = whole.estimate(0.999), parts.estimate(0.999)
    for name in ("standard_error", "lower", "upper", "curve_lower", "curve_upper", "effective_samples"):
        np.testing.assert_allclose(getattr(of_parts, name), getattr(estimates, name), rtol=1e-7)
    is_known = estimates.status == "ok"
    assert is_known.any()
    for column, parameter in enumerate(decoder.law.parameters):
        known = is_known[:, column]
        lower, upper = estimates.lower[known, column], estimates.upper[known, column]
        value = estimates.value[known, column]
        assert ((parameter.lower <= lower) & (lower <= value) & (value <= upper) & (upper <= parameter.upper)).all()
    assert estimates.units == tuple(parameter.unit for parameter in decoder.law.parameters)


def test_missing_elements_touch_nothing() -> None:
    planted = PLANTED["ring-down"]
    decoder, (values, observed, share) = planted.decoder(N_CELLS), mixed_data(planted)
    fit(decoder, values, observed, share)
    clean, dirty = EstimateAccumulator(decoder), EstimateAccumulator(decoder)
    clean.add(values, observed, share)
    dirty.add(torch.where(observed, values, torch.nan), observed, share)
    np.testing.assert_array_equal(clean.estimate().standard_error, dirty.estimate().standard_error)


def test_a_sample_without_any_element_does_not_count() -> None:
    planted = PLANTED["line"]
    decoder, (values, observed, share) = planted.decoder(N_CELLS), mixed_data(planted)
    fit(decoder, values, observed, share)
    clean, dirty = EstimateAccumulator(decoder), EstimateAccumulator(decoder)
    clean.add(values, observed, share)
    dirty.add(values, observed, share)
    dirty.add(values[:5], torch.zeros_like(observed[:5]), share[:5])
    np.testing.assert_allclose(dirty.estimate().effective_samples, clean.estimate().effective_samples)
    np.testing.assert_allclose(dirty.estimate().standard_error, clean.estimate().standard_error)


def test_replicates_of_a_specimen_count_once() -> None:
    planted = PLANTED["power"]
    decoder, (values, observed, share) = planted.decoder(N_CELLS), mixed_data(planted)
    fit(decoder, values, observed, share)
    single, grouped, apart = (EstimateAccumulator(decoder) for _ in range(3))
    single.add(values, observed, share)
    for _ in range(3):  # the same specimens measured three times, to the same result
        grouped.add(values, observed, share, [f"specimen {number}" for number in range(40)])
        apart.add(values, observed, share)
    expected = single.estimate()
    np.testing.assert_allclose(grouped.estimate().standard_error, expected.standard_error, rtol=1e-7)
    np.testing.assert_allclose(grouped.estimate().effective_samples, expected.effective_samples)
    assert (apart.estimate().standard_error < 0.7 * expected.standard_error).all()


def test_a_cell_with_less_than_two_samples_has_no_interval() -> None:
    planted = PLANTED["line"]
    decoder, (values, observed, _) = planted.decoder(N_CELLS), mixed_data(planted)
    share = torch.zeros(40, N_CELLS)
    share[0, 0], share[1:, 1] = 1, 1
    fit(decoder, values, observed, share)
    accumulator = EstimateAccumulator(decoder)
    accumulator.add(values, observed, share)
    estimates = accumulator.estimate()
    assert estimates.status[:, 0].tolist() == ["too few samples", "ok", "too few samples"]
    for array in (estimates.standard_error, estimates.lower, estimates.upper, estimates.curve_lower):
        assert np.isnan(array[[0, 2]]).all()
        assert np.isfinite(array[1]).all()
    assert np.isfinite(estimates.value).all()
    assert np.isfinite(estimates.curve).all()


def test_what_nothing_measured_is_not_identified_and_the_rest_is() -> None:
    position = torch.linspace(0, 10, 21)
    decoder = PhysicsDecoder(
        PiecewiseLinear(), Modality("curve", position.shape, "curve", position), 1, DecoderVariance(), 2
    )
    vector = decoder.curve.parameters_of_law
    with torch.no_grad():
        decoder.table.copy_(vector.to_unconstrained(torch.tensor([[6.2, 3.0, 1.0, 0.5]])))
    values = decoder.curve(decoder.table).detach() + 0.1 * torch.randn(20, 21)
    observed = (position < 6).expand(20, -1)
    accumulator = EstimateAccumulator(decoder)
    accumulator.add(values, observed, torch.ones(20, 1))
    estimates = accumulator.estimate()
    assert estimates.status[0].tolist() == ["not identified", "ok", "not identified", "ok"]
    assert np.isnan(estimates.lower[0, [0, 2]]).all()
    assert np.isfinite(estimates.lower[0, [1, 3]]).all()
    assert np.isfinite(estimates.curve_lower[0, position < 6.2]).all()
    assert np.isnan(estimates.curve_lower[0, position > 6.4]).all()


def test_directions_that_nothing_measured_spoil_all_parameters_along_them() -> None:
    """One position cannot tell slope from intercept, though each alone would change the curve there."""
    position = torch.tensor([1.0, 2.0])
    decoder = PhysicsDecoder(Linear(), Modality("curve", position.shape, "curve", position), 1, DecoderVariance(), 2)
    accumulator = EstimateAccumulator(decoder)
    accumulator.add(torch.randn(9, 2), torch.tensor([True, False]).expand(9, -1), torch.ones(9, 1))
    estimates = accumulator.estimate()
    assert (estimates.status == "not identified").all()
    assert np.isnan(estimates.curve_lower[0]).tolist() == [False, True]


def test_a_parameter_at_its_bound_is_told_and_the_others_are_estimated() -> None:
    planted = PLANTED["Voigt peak"]
    decoder = planted.decoder(1)
    truth = torch.tensor([list(planted.truth.values())])
    truth[0, 3] = 1e-9
    with torch.no_grad():
        decoder.table.copy_(decoder.curve.parameters_of_law.to_unconstrained(truth))
    values = decoder.curve(decoder.table).detach() + 0.02 * torch.randn(30, 40)
    accumulator = EstimateAccumulator(decoder)
    accumulator.add(values, None, torch.ones(30, 1))
    estimates = accumulator.estimate()
    assert estimates.status[0].tolist() == ["ok", "ok", "ok", "at bound", "ok"]
    assert np.isfinite(estimates.lower[0]).tolist() == [True, True, True, False, True]
    # Without its Lorentzian part the peak is a Gaussian: the errors of the rest are those of a law without that part.
    gaussian = PhysicsDecoder(Peaks(), planted.modality(), 1, DecoderVariance(), 2)
    kept = truth[:, [0, 1, 2, 4]]
    with torch.no_grad():
        gaussian.table.copy_(gaussian.curve.parameters_of_law.to_unconstrained(kept))
    simpler = EstimateAccumulator(gaussian)
    simpler.add(values, None, torch.ones(30, 1))
    expected = simpler.estimate().standard_error[0]
    np.testing.assert_allclose(estimates.standard_error[0, [0, 1, 2, 4]], expected, rtol=1e-3)


def test_parameters_that_depend_on_z_have_no_estimates_per_cell() -> None:
    with pytest.raises(ValueError, match='source: expected "cell" for estimates per cell, got "latent"'):
        EstimateAccumulator(PLANTED["line"].decoder(N_CELLS, source="latent"))
