"""Laws that every physics law keeps: its formula, broadcasting, gradients, bounds, a guess that is near."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from planted_laws import PLANTED, PlantedLaw, every_law
from torch import Tensor

from causalpima.models.batch import Modality, Standardisation
from causalpima.models.decoders.physics.law import Axes, LawCurve, PhysicsLaw
from causalpima.models.decoders.physics.laws import LAWS, PiecewiseLinear, load_law


def bound_law(planted: PlantedLaw) -> PhysicsLaw:
    return planted.build().bind(planted.modality())


def truth(planted: PlantedLaw) -> dict[str, Tensor]:
    return {name: torch.tensor([value]) for name, value in planted.truth.items()}


def around_start(planted: PlantedLaw, *batch: int) -> tuple[LawCurve, Tensor]:
    curve = LawCurve(planted.build(), planted.modality())
    return curve, curve.parameters_of_law.start() + 0.3 * torch.randn(*batch, curve.n_parameters)


def test_every_shipped_law_is_planted() -> None:
    assert {planted.law for planted in PLANTED.values()} == set(LAWS)


@every_law
def test_the_curve_is_that_of_the_formula(planted: PlantedLaw) -> None:
    curve = bound_law(planted).mean(torch.as_tensor(planted.position), **truth(planted))
    np.testing.assert_allclose(curve.numpy(), planted.curve(), rtol=1e-10, atol=1e-12)


@every_law
def test_names_are_those_of_the_truth_and_the_truth_is_within_bounds(planted: PlantedLaw) -> None:
    parameters = bound_law(planted).parameters
    assert [parameter.name for parameter in parameters] == list(planted.truth)
    for parameter in parameters:
        assert parameter.lower < planted.truth[parameter.name] < parameter.upper
        assert parameter.description


@every_law
@pytest.mark.parametrize("batch", [(), (3,), (2, 1, 3)], ids=str)
def test_parameters_broadcast(planted: PlantedLaw, batch: tuple[int, ...]) -> None:
    curve, unconstrained = around_start(planted, *batch)
    whole = curve(unconstrained)
    assert whole.shape == (*batch, len(planted.position))
    rows = [curve(row) for row in unconstrained.reshape(-1, curve.n_parameters)]
    torch.testing.assert_close(whole, torch.stack(rows).reshape(whole.shape))


@every_law
def test_gradients_are_those_of_differences(planted: PlantedLaw) -> None:
    curve, unconstrained = around_start(planted, 2)
    assert torch.autograd.gradcheck(curve, unconstrained.requires_grad_())


@pytest.mark.parametrize(
    ("planted", "ordered"),
    [("two Gaussian peaks", ("centre_1", "centre_2")), ("three pieces", ("inflection_1", "inflection_2"))],
)
def test_peaks_and_kinks_cannot_change_places(planted: str, ordered: tuple[str, str]) -> None:
    vector = LawCurve(PLANTED[planted].build(), PLANTED[planted].modality()).parameters_of_law
    physical = vector.to_physical(4 * torch.randn(200, len(vector)))
    first, second = (physical[:, vector.names.index(name)] for name in ordered)
    assert (first < second).all()


@every_law
def test_the_jacobian_is_that_of_reverse_mode_row_by_row(planted: PlantedLaw) -> None:
    curve, unconstrained = around_start(planted, 3)
    value, jacobian = curve.with_jacobian(unconstrained)
    torch.testing.assert_close(value, curve(unconstrained))
    by_reverse = torch.stack([torch.autograd.functional.jacobian(curve, row) for row in unconstrained])
    torch.testing.assert_close(jacobian, by_reverse)


@every_law
def test_every_parameter_changes_the_curve(planted: PlantedLaw) -> None:
    curve, unconstrained = around_start(planted, 1)
    _, jacobian = curve.with_jacobian(unconstrained)
    assert (jacobian.abs().amax((0, 1)) > 0).all()


@every_law
@pytest.mark.float32
def test_single_precision_is_finite_even_at_the_edges(planted: PlantedLaw) -> None:
    curve = LawCurve(planted.build(), planted.modality())
    start = curve.parameters_of_law.start().float()
    extreme = (start + torch.linspace(-8, 8, 5)[:, None] * torch.ones_like(start)).requires_grad_()
    value = curve(extreme)
    assert value.dtype == torch.float32
    (gradient,) = torch.autograd.grad(value.sum(), extreme)
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()


@every_law
def test_the_guess_explains_most_of_a_noisy_curve_with_gaps(planted: PlantedLaw) -> None:
    rng, curve = np.random.default_rng(3), planted.curve()
    spread = curve.std()
    noisy = np.where(rng.random(len(curve)) > 0.2, curve + 0.05 * spread * rng.normal(size=len(curve)), np.nan)
    law = bound_law(planted)
    guess = {parameter.name: parameter.start for parameter in law.parameters} | dict(law.guess(planted.position, noisy))
    arguments = {name: torch.tensor([float(guess[name])]) for name in planted.truth}
    guessed = law.mean(torch.as_tensor(planted.position), **arguments).numpy()
    assert np.square(guessed - curve).mean() < 0.25 * spread**2


@every_law
def test_a_curve_without_elements_gives_no_finite_guess(planted: PlantedLaw) -> None:
    guess = bound_law(planted).guess(planted.position, np.full(len(planted.position), np.nan))
    assert not guess or not np.isfinite(list(guess.values())).all()


@every_law
def test_binding_leaves_the_law_as_it_was(planted: PlantedLaw) -> None:
    law = planted.build()
    before = law.parameters
    law.bind(planted.modality())
    assert law.parameters == before


@pytest.mark.parametrize(
    ("planted", "units"),
    [
        ("two pieces", {"inflection": "s", "slope_1": "MPa/s", "intercept": "MPa"}),
        ("ring-down", {"amplitude": "MPa", "decay_rate": "1/s", "frequency": "1/s", "phase": "rad"}),
        ("power", {"coefficient": "MPa", "exponent": ""}),
        ("Voigt peak", {"centre": "s", "height": "MPa", "gaussian_width": "s", "lorentzian_width": "s"}),
    ],
)
def test_units_come_from_the_data(planted: str, units: dict[str, str]) -> None:
    found = {parameter.name: parameter.unit for parameter in bound_law(PLANTED[planted]).parameters}
    assert {name: found[name] for name in units} == units


def test_without_units_there_are_none() -> None:
    axes = Axes.of(Modality("curve", torch.Size([3]), "curve", torch.tensor([0.0, 1.0, 3.0])))
    assert (axes.slope_unit, axes.rate_unit) == ("", "")
    assert axes.position.spacing == 1.5


def test_a_power_of_zero_is_zero_with_derivatives() -> None:
    law, position = load_law("power_law"), torch.tensor([0.0, 2.0])
    exponent = torch.tensor([0.5], requires_grad=True)
    curve = law.mean(position, coefficient=torch.tensor([3.0]), exponent=exponent)
    assert curve[0] == 0
    (gradient,) = torch.autograd.grad(curve.sum(), exponent)
    assert gradient.item() == pytest.approx(3 * 2**0.5 * np.log(2))


@pytest.mark.parametrize(
    ("law", "options", "message"),
    [
        ("piecewise_linear", {"n_pieces": 1}, "n_pieces: expected two or more, got 1"),
        ("power_law", {"reference": 0.0}, "reference: expected a positive position, got 0"),
        ("peaks", {"n_peaks": 0}, "n_peaks: expected one or more, got 0"),
        ("peaks", {"shape": "sharp"}, "expected a shape of gaussian, lorentzian, voigt .*'sharp'"),
        ("peaks", {"baseline": "odd"}, "a baseline of none, constant, linear.*'odd'"),
    ],
)
def test_wrong_options_are_told(law: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_law(law, options)


def test_a_power_law_on_negative_positions_is_told() -> None:
    modality = Modality("curve", torch.Size([3]), "curve", torch.tensor([-1.0, 1.0, 3.0]))
    with pytest.raises(ValueError, match="power_law: expected positions that are not negative, got -1"):
        load_law("power_law").bind(modality)


def test_a_law_needs_a_curve_with_positions() -> None:
    with pytest.raises(ValueError, match="photo: expected a curve with two or more positions, got a image without"):
        PiecewiseLinear().bind(Modality("photo", torch.Size([8, 8, 1]), "image"))


@pytest.mark.parametrize(
    ("first", "offset", "message"),
    [
        (
            0.0,
            2.0**30,
            "load: expected differences that float32 can hold, in which a physics law is computed, got a st",
        ),
        (1.7e9, None, "time: expected positions of 'load' whose distances float32 can hold, .* got distances of 1 at "),
    ],
)
def test_a_law_needs_numbers_that_float32_tells_apart(first: float, offset: float | None, message: str) -> None:
    positions, scale = torch.arange(8, dtype=torch.float64) + first, Standardisation(offset=offset)
    load = Modality("load", torch.Size([8]), "curve", positions, "time", standardisation=scale)
    with pytest.raises(ValueError, match=message):
        PiecewiseLinear().bind(load)
