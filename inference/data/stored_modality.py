"""A variable on disk as a modality."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from inference.data.modalities import Modality, modality_kind, not_real
from inference.data.scan import scan
from inference.data.stored import RowReader, StoredArray, StoredVariable

__all__ = ["to_stored_modality"]


def to_stored_modality(name: str, values: StoredVariable, kind: str | None = None, mask: Any = None) -> Modality:
    """What `to_modality` makes of an array, without loading it: the variable is read through once.

    Args:
        name: Name for messages.
        values: The variable.
        kind: Default by shape.
        mask: What was measured, on disk or an array.

    Raises:
        ValueError: Values, a shape or a mask that `to_modality` or `check_values` would refuse.
    """
    shown = modality_kind(name, kind, values.shape)
    if values.dtype.kind not in "biuf":
        raise not_real(name, values.dtype)
    reader = RowReader(name, values, shown, mask)
    found = scan(reader)
    observed = StoredArray(reader, True, found) if found.has_gaps else None
    # They are indexed as arrays are, and that is all that data are used for.
    stored = cast(np.ndarray, StoredArray(reader, False, found))
    return Modality(stored, found.present, shown, cast(np.ndarray | None, observed))
