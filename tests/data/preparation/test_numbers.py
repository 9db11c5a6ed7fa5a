from __future__ import annotations

import numpy as np
import pytest

from causalpima.inference.data.preparation.fields import parse_number, whole_numbers


@pytest.mark.parametrize(
    ("entry", "value"), [("1.5", 1.5), ("-2e3", -2000.0), ("1,5", None), ("n.d.", None), ("inf", None), ("nan", None)]
)
def test_finite_numbers_only(entry: str, value: float | None) -> None:
    assert parse_number(entry) == value


def test_decimal_commas() -> None:
    assert parse_number("1,5", ",") == 1.5


def test_whole_numbers() -> None:
    np.testing.assert_array_equal(whole_numbers(["1", "-20", "007"]), [1, -20, 7])
    for entry in ("", "1.0", "a", "1" * 30):
        assert whole_numbers(["1", entry]) is None
