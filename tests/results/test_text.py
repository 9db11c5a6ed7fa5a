from __future__ import annotations

import doctest

import hypothesis.strategies as st
import pytest
from hypothesis import given

from causalpima.inference.findings.evaluation import evaluation_table
from causalpima.inference.reporting.content import later_parts
from causalpima.inference.store import text
from causalpima.inference.store.text import (
    cell_names,
    format_count,
    format_number,
    format_r2,
    is_number,
    printable,
    shorten,
)


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


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.9, 0.01, "0.900 ± 0.010"),
        (-9.65, None, "-9.650 (worse than the mean)"),
        (0.0, None, "0.000"),
        (None, None, "-"),
    ],
)
def test_a_prediction_that_is_worse_than_the_mean_is_called_so(
    value: float | None, error: float | None, text: str
) -> None:
    assert format_r2(value, error) == text


def test_evaluate_and_page_say_what_is_worse_than_the_mean() -> None:
    score = {"r2": -9.65, "standard_error": 0.5, "r2_cluster_mean": 0.2, "n_samples": 12}
    told = " ".join(evaluation_table({"cross_modal": {"curve": score}}).split())
    assert "R² -9.650 ± 0.500 (worse than the mean), by the means of the clusters 0.200" in told
    (part,) = later_parts({"evaluate": {"cross_modal": {"curve": score}}})
    assert ["cross_modal: curve: r2", "-9.650 (worse than the mean)"] in part.tables[0].rows
