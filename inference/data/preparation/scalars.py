"""A column of numbers as a modality."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inference.data.preparation.manifest import Column
from inference.data.preparation.modality import Modality, attempt_all, entry_of, none_usable
from inference.data.preparation.numbers import parse_number
from inference.data.preparation.problems import UnusableError

__all__ = ["scalar_modality"]


def scalar_modality(column: Column, decimal: str, rows: Sequence[int]) -> Modality:
    """One number per sample, in the units of the header.

    Args:
        column: The column.
        decimal: The manifest's decimal sign.
        rows: Rows in use.

    Raises:
        ValueError: Not one number in them.
    """

    def read(row: int) -> np.ndarray:
        entry = entry_of(column, row)
        value = parse_number(entry, decimal)
        if value is None:
            raise UnusableError("no finite number")
        return np.array(value)

    found, problems = attempt_all(read, rows)
    if not found:
        raise none_usable(column, problems)
    return Modality(column, "vector", (), (), "float64", read, column.units)
