"""Labels, covariates and groups from the columns of the manifest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inference.data.preparation.identifiers import group_entries
from inference.data.preparation.numbers import whole_numbers
from inference.data.preparation.roles import Role
from inference.data.preparation.sample_file import Known

__all__ = ["NOT_RECORDED", "known_of"]

NOT_RECORDED = "not recorded"

_ATTRIBUTE = {"labels": "label", "covariates": "covariate", "group": "group"}


def known_of(roles: Sequence[Role], names: Sequence[str], rows: Sequence[int]) -> list[Known]:
    """A variable for every column of labels, covariates and the group.

    Whole numbers without a gap stay numbers, all else is text. No entry in a label or covariate is a level of its own,
    `NOT_RECORDED`.

    Args:
        roles: Role of every column.
        names: Name of every row's sample.
        rows: Rows in use; the others do not matter.

    Raises:
        ValueError: Samples are replicates of each other.
    """
    return [_known(role, names, rows) for role in roles if role.kind in _ATTRIBUTE]


def _known(role: Role, names: Sequence[str], rows: Sequence[int]) -> Known:
    column = role.column
    entries = group_entries(column, names, rows) if role.kind == "group" else column.entries
    numbers = whole_numbers([entries[row] for row in rows])
    values = np.array([entry or NOT_RECORDED for entry in entries], dtype=object)
    if numbers is not None:
        values = np.zeros(len(entries), dtype=np.int64)
        values[list(rows)] = numbers
    attributes = {"role": _ATTRIBUTE[role.kind], "long_name": column.title}
    return Known(column.name, values, {**attributes, **({"units": column.units} if column.units else {})})
