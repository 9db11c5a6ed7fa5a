from __future__ import annotations

import pytest

from causalpima.inference.data.preparation.fields import DecimalSign
from causalpima.inference.data.preparation.manifest import Column
from causalpima.inference.data.preparation.options import Omission
from causalpima.inference.data.preparation.roles import distinct_rows, group_entries


def column(name: str, *entries: str) -> Column:
    return Column(name, name, name, "", entries, entries, DecimalSign("."))


def test_the_first_of_equal_names_is_used() -> None:
    rows, omitted = distinct_rows(["a", "b", "a", "", "c"])
    assert rows == [0, 1, 4]
    assert omitted == [Omission(3, "a", "duplicate id, row 1 has it"), Omission(4, "", "no id")]


#   S1 <- S2 <- S3     S4     X <- S5, where X is no row
def test_replicates_of_replicates_are_one_group() -> None:
    names = ("S1", "S2", "S3", "S4", "S5")
    groups = group_entries(column("replicate_of", "", "S1", "S2", "S4", "X"), names, range(5))
    assert groups == ("S1", "S1", "S1", "S4", "X")


def test_chains_need_no_order_of_rows() -> None:
    assert group_entries(column("Replicate_of", "b", "c", ""), ("a", "b", "c"), range(3)) == ("c", "c", "c")


def test_circles_are_refused() -> None:
    with pytest.raises(ValueError, match="expected chains that end, got a -> b -> a"):
        group_entries(column("replicate_of", "b", "a"), ("a", "b"), range(2))


def test_rows_that_are_left_out_say_nothing_of_the_groups() -> None:
    assert group_entries(column("replicate_of", "", "", "b"), ("a", "b", "a"), [0, 1])[0] == "a"


def test_another_group_column_does_not_refer_to_samples() -> None:
    assert group_entries(column("specimen", "2", "1", ""), ("1", "2", "3"), range(3)) == ("2", "1", "only 3")
