"""Least squares per cell: SciPy's optimum, the right basin, gaps, cells without data."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from planted_laws import PLANTED, PlantedLaw, every_law
from scipy.optimize import least_squares
from torch import Tensor

from causalpima.models.decoders.physics.law import LawCurve
from causalpima.models.decoders.physics.least_squares import fit_cells, minimise


def curve_of(planted: PlantedLaw) -> LawCurve:
    return LawCurve(planted.build(), planted.modality())


def noisy_means(planted: PlantedLaw, n_cells: int = 3) -> tuple[Tensor, Tensor]:
    values, observed = planted.draw(n_cells, 6, seed=11, has_gaps=True)
    weight = observed.double().sum(1)
    return values.sum(1) / weight.clamp(min=1), weight


def costs(curve: LawCurve, value: Tensor, mean: Tensor, weight: Tensor) -> Tensor:
    return 0.5 * (weight * (curve(value) - mean).square()).sum(-1)


@every_law
def test_the_optimum_is_that_of_scipy(planted: PlantedLaw) -> None:
    curve, (mean, weight) = curve_of(planted), noisy_means(planted)
    truth = curve.parameters_of_law.to_unconstrained(torch.as_tensor(planted.truth_array))
    found, cost = minimise(curve, mean, weight, truth.expand(3, -1))
    for cell in range(3):
        root = weight[cell].sqrt()

        def residual(u: np.ndarray, cell: int = cell, root: Tensor = root) -> np.ndarray:
            return (root * (curve(torch.as_tensor(u)) - mean[cell])).numpy()

        reference = least_squares(residual, truth.numpy(), method="lm", xtol=1e-12, ftol=1e-12)
        assert cost[cell].item() <= reference.cost * (1 + 1e-7)
    torch.testing.assert_close(cost, costs(curve, found, mean, weight))


@every_law
def test_nothing_near_the_result_is_better_and_the_start_does_not_matter(planted: PlantedLaw) -> None:
    curve, (mean, weight) = curve_of(planted), noisy_means(planted)
    start = curve.parameters_of_law.start()
    found = fit_cells(curve, start.expand(3, -1), mean, weight)
    far = fit_cells(curve, start + 4 * torch.randn(3, len(start)), mean, weight, seed=5)
    torch.testing.assert_close(curve(found), curve(far), atol=1e-5, rtol=1e-5)
    best = costs(curve, found, mean, weight)
    for size in (1e-3, 1e-1):
        nearby = found + size * torch.randn(200, *found.shape)
        assert (costs(curve, nearby, mean, weight) >= best * (1 - 1e-9)).all()


def test_random_starts_alone_find_the_basin(monkeypatch: pytest.MonkeyPatch) -> None:
    curve, (mean, weight) = curve_of(PLANTED["two pieces"]), noisy_means(PLANTED["two pieces"])
    guided = fit_cells(curve, curve.parameters_of_law.start().expand(3, -1), mean, weight)
    monkeypatch.setattr(type(curve.law), "guess", lambda *_: {})
    bad = torch.tensor([-8.0, -30.0, 30.0, 9.0]).expand(3, -1)
    torch.testing.assert_close(fit_cells(curve, bad, mean, weight), guided, atol=1e-6, rtol=1e-6)


def test_one_bad_start_alone_ends_in_a_wrong_optimum() -> None:
    planted = PLANTED["ring-down"]
    curve, (mean, weight) = curve_of(planted), noisy_means(planted, 1)
    bad = dict(planted.truth) | {"frequency": 5.0}
    start = curve.parameters_of_law.to_unconstrained(torch.tensor([list(bad.values())]))
    _, stuck = minimise(curve, mean, weight, start)
    best = costs(curve, fit_cells(curve, start, mean, weight), mean, weight)
    assert (stuck > 2 * best).all()


def test_the_same_arguments_give_the_same_result_whatever_torch_draws() -> None:
    planted = PLANTED["two pieces"]
    curve, (mean, weight) = curve_of(planted), noisy_means(planted)
    start = curve.parameters_of_law.start().expand(3, -1)
    first = fit_cells(curve, start, mean, weight)
    torch.manual_seed(99)
    assert torch.equal(fit_cells(curve, start, mean, weight), first)


def test_cells_without_weight_keep_their_values_and_others_do_not_see_them() -> None:
    planted = PLANTED["power"]
    curve, (mean, weight) = curve_of(planted), noisy_means(planted)
    start = curve.parameters_of_law.start() + torch.randn(3, curve.n_parameters)
    alone = fit_cells(curve, start[[0, 2]], mean[[0, 2]], weight[[0, 2]])
    weight[1] = 0
    found = fit_cells(curve, start, mean, weight)
    assert torch.equal(found[1], start[1])
    torch.testing.assert_close(found[[0, 2]], alone)


def test_values_without_weight_do_not_matter_even_if_they_are_not_finite() -> None:
    planted = PLANTED["ring-down"]
    curve, (mean, weight) = curve_of(planted), noisy_means(planted)
    weight[:, 5:9] = 0
    start = curve.parameters_of_law.start().expand(3, -1)
    expected = fit_cells(curve, start, mean, weight)
    mean[:, 5:9] = torch.nan
    assert torch.equal(fit_cells(curve, start, mean, weight), expected)


def test_the_size_of_the_weights_does_not_matter() -> None:
    planted = PLANTED["Voigt peak"]
    curve, (mean, weight) = curve_of(planted), noisy_means(planted)
    start = curve.parameters_of_law.start().expand(3, -1)
    expected = fit_cells(curve, start, mean, weight)
    for factor in (1e-9, 1e9):
        torch.testing.assert_close(fit_cells(curve, start, mean, weight * factor), expected, rtol=1e-6, atol=1e-6)


def test_fewer_elements_than_parameters_are_no_trouble() -> None:
    planted = PLANTED["two pieces"]
    curve, (mean, weight) = curve_of(planted), noisy_means(planted)
    weight[:, 2:] = 0
    found = fit_cells(curve, curve.parameters_of_law.start().expand(3, -1), mean, weight)
    assert torch.isfinite(found).all()
    torch.testing.assert_close(curve(found)[:, :2], mean[:, :2], atol=1e-5, rtol=1e-5)
