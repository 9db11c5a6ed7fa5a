"""Physical parameters: bijections, bounds, starts, what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from causalpima.models.decoders.physics.law import ParameterVector, PhysicalParameter

KINDS = {
    "free": PhysicalParameter("x", start=-3.0),
    "free from zero": PhysicalParameter("x", scale=40.0),
    "positive": PhysicalParameter("x", lower=0.0, start=200.0),
    "above a limit": PhysicalParameter("x", lower=-5.0, start=-4.0),
    "below a limit": PhysicalParameter("x", upper=2.0, start=-1.0),
    "between": PhysicalParameter("x", lower=400.0, upper=700.0, start=420.0),
}
every_kind = pytest.mark.parametrize("parameter", KINDS.values(), ids=KINDS.keys())
ORDERED = ParameterVector(
    [
        PhysicalParameter("a", lower=0.0, upper=10.0, start=2.0),
        PhysicalParameter("other", start=1.0),
        PhysicalParameter("b", lower=0.0, upper=10.0, start=5.0, above="a"),
        PhysicalParameter("c", start=9.0, above="b"),
    ]
)


@every_kind
def test_there_and_back(parameter: PhysicalParameter) -> None:
    unconstrained = torch.linspace(-8, 8, 33)
    physical = parameter.to_physical(unconstrained)
    torch.testing.assert_close(parameter.to_unconstrained(physical), unconstrained, rtol=1e-8, atol=1e-8)


@every_kind
def test_values_rise_inside_the_bounds(parameter: PhysicalParameter) -> None:
    physical = parameter.to_physical(torch.linspace(-20, 20, 41))
    assert (physical.diff() > 0).all()
    assert (physical > parameter.lower).all()
    assert (physical < parameter.upper).all()


@every_kind
def test_gradients_are_those_of_differences(parameter: PhysicalParameter) -> None:
    assert torch.autograd.gradcheck(parameter.to_physical, torch.linspace(-3, 3, 7).requires_grad_())


@every_kind
def test_the_start_is_the_start(parameter: PhysicalParameter) -> None:
    start = ParameterVector([parameter]).start()
    assert parameter.to_physical(start).item() == pytest.approx(parameter.start)


@pytest.mark.parametrize("kind", ["positive", "above a limit", "below a limit", "free"])
def test_the_start_of_a_parameter_without_two_bounds_is_at_zero(kind: str) -> None:
    assert ParameterVector([KINDS[kind]]).start().item() == pytest.approx(0, abs=1e-12)


@every_kind
def test_far_values_are_finite_in_both_directions(parameter: PhysicalParameter) -> None:
    far = torch.tensor([-1e4, 1e4], requires_grad=True)
    physical = parameter.to_physical(far)
    (gradient,) = torch.autograd.grad(physical.sum(), far)
    assert torch.isfinite(physical).all()
    assert torch.isfinite(gradient).all()
    outside = torch.tensor([-1e6, parameter.lower, parameter.upper, 1e6])
    outside = outside[torch.isfinite(outside)]
    assert torch.isfinite(parameter.to_unconstrained(outside)).all()


@every_kind
def test_draws_are_inside_and_differ(parameter: PhysicalParameter) -> None:
    drawn = parameter.draw(np.random.default_rng(0), np.full(200, parameter.lower))
    assert (drawn > parameter.lower).all()
    assert (drawn < parameter.upper).all()
    assert len(np.unique(drawn)) == 200


@given(st.lists(st.floats(-6, 6), min_size=4, max_size=4))
def test_parameters_above_others_stay_in_order(unconstrained: list[float]) -> None:
    u = torch.tensor(unconstrained, dtype=torch.float64)
    physical = ORDERED.to_physical(u)
    a, _, b, c = physical.tolist()
    assert 0 < a < b < 10
    assert b < c
    torch.testing.assert_close(ORDERED.to_unconstrained(physical), u, rtol=1e-6, atol=1e-6)


def test_draws_of_ordered_parameters_are_in_order() -> None:
    drawn = ORDERED.draw(np.random.default_rng(1), 100)
    assert (drawn[:, 0] < drawn[:, 2]).all()
    assert (drawn[:, 2] < drawn[:, 3]).all()


def test_a_parameter_at_a_bound_is_seen_also_where_the_bound_is_another() -> None:
    physical = np.array([[1e-5, 0.0, 9.0, 12.0], [5.0, 0.0, 5.0001, 12.0], [5.0, 0.0, 7.0, 12.0]])
    assert ORDERED.is_at_bound(physical).tolist() == [
        [True, False, False, False],
        [False, False, True, False],
        [False, False, False, False],
    ]


def test_a_period_is_taken_off() -> None:
    vector = ParameterVector([PhysicalParameter("phase", scale=1.0, period=2 * math.pi)])
    wrapped = vector.wrapped(torch.tensor([[3.0], [-3.0], [4.0], [-40.0]])).squeeze(-1)
    torch.testing.assert_close(wrapped, torch.tensor([3.0, -3.0, 4.0 - 2 * math.pi, -40 + 12 * math.pi]))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "two words"}, "parameter 'two words': expected a Python name"),
        ({"lower": 1.0, "upper": 1.0}, "parameter x: expected lower < upper, got 1.0 and 1.0"),
        ({"lower": 0.0}, r"parameter x: expected a start inside \(0.0, inf\), got 0.0"),
        ({"start": math.nan}, "parameter x: expected a start inside .*, got nan"),
        ({"scale": 0.0}, "parameter x: expected a positive scale, got 0.0"),
        ({"period": 1.0, "lower": -1.0}, "parameter x: expected a positive period and no bounds, got 1.0"),
    ],
)
def test_what_makes_no_sense_is_told(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PhysicalParameter(**({"name": "x"} | fields))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ([], r"expected one or more with different names, got \[\]"),
        ([PhysicalParameter("x"), PhysicalParameter("x")], r"different names, got \['x', 'x'\]"),
        ([PhysicalParameter("x", above="y"), PhysicalParameter("y")], r"`above` to be one of .* \[\], got 'y'"),
    ],
)
def test_vectors_that_make_no_sense_are_told(parameters: list[PhysicalParameter], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ParameterVector(parameters)
