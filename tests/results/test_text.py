from __future__ import annotations

import doctest

import hypothesis.strategies as st
import pytest
from hypothesis import given

from inference.results import text
from inference.results.text import cell_names, format_count, format_number, is_number, printable, shorten


def test_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(text)
    assert (found.failed, found.attempted > 0) == (0, True)


@given(name=st.text("ab é\n\x1b\u202e"), width=st.integers(2, 30))
def test_shortened_names_fit_on_a_line_and_keep_both_ends(name: str, width: int) -> None:
    short = shorten(name, width)
    line = printable(name)
    assert len(short) <= width
    assert short.isprintable()
    assert short == line if len(line) <= width else (short[0] == line[0] and "…" in short)


def test_cells_are_named_row_major() -> None:
    assert cell_names((("a", "b"), ("0", "1", "2")))[4] == "(b, 1)"


@pytest.mark.parametrize("value", [None, True, float("nan"), float("-inf"), "1"])
def test_what_is_no_finite_number_is_a_dash(value: object) -> None:
    assert not is_number(value)
    assert format_number(value) == "-"


def test_counts_beyond_every_float_are_written() -> None:
    assert format_count(10**5000) == "about 10^5000"
    assert format_count(999_999) == "999999"
