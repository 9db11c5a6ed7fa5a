"""Schedules: where they begin and end, and how they go from one to the other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalpima.inference.training.state import geometric, linear, warmup

ENDS = st.floats(1e-3, 1e3)
LENGTHS = st.integers(2, 50)


@given(start=ENDS, end=ENDS, n=LENGTHS)
def test_both_run_from_start_at_the_first_to_end_at_the_last_epoch(start: float, end: float, n: int) -> None:
    for schedule in (geometric, linear):
        assert schedule(start, end, 0, n) == start
        assert schedule(start, end, n - 1, n) == pytest.approx(end, rel=1e-9)
        assert schedule(start, end, n + 7, n) == schedule(start, end, n - 1, n), "it stays where it ended"


@given(start=ENDS, end=ENDS, n=st.integers(3, 50))
def test_steps_are_a_constant_factor_or_a_constant_difference(start: float, end: float, n: int) -> None:
    by_factor = [geometric(start, end, epoch, n) for epoch in range(n)]
    by_difference = [linear(start, end, epoch, n) for epoch in range(n)]
    for epoch in range(n - 1):
        assert by_factor[epoch + 1] / by_factor[epoch] == pytest.approx((end / start) ** (1 / (n - 1)), rel=1e-9)
        step = by_difference[epoch + 1] - by_difference[epoch]
        assert step == pytest.approx((end - start) / (n - 1), rel=1e-9, abs=1e-9 * max(start, end))


@pytest.mark.parametrize("n", [0, 1])
def test_a_single_epoch_is_the_last_one(n: int) -> None:
    assert geometric(1.0, 0.05, 0, n) == 0.05
    assert linear(0.5, 0.0, 0, n) == 0.0


def test_linear_reaches_zero_exactly() -> None:
    assert [linear(0.5, 0.0, epoch, 6) for epoch in (4, 5, 6)] == [pytest.approx(0.1), 0.0, 0.0]


def test_warmup_rises_to_one_and_stays() -> None:
    assert [warmup(epoch, 4) for epoch in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    assert warmup(0, 1) == 1.0
    assert warmup(0, 0) == 1.0
