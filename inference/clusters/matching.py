"""Keeping the numbers of cells from one read-out to the next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from inference.clusters.read_out import ReadOut, row_blocks

__all__ = ["match_cells", "relabel"]


def match_cells(previous: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The numbers that the cells of `new` should bear so that they agree with `previous` as well as they can.

    Maximises sum_n sum_c new[n, c] previous[n, permutation[c]], the expected number of samples that keep their cell,
    over all bijections (Hungarian algorithm).

    Args:
        previous: Responsibilities of the cells as they are numbered so far, `[n, C]`.
        new: Responsibilities of the same samples under another read-out, `[n, C]`.

    Returns:
        `permutation` `[C]`: cell c of `new` becomes cell `permutation[c]`, as `relabel` takes it. Responsibilities in
        the old numbering are `new[:, np.argsort(permutation)]`.

    Raises:
        ValueError: If the two differ in shape or hold values that are not finite.
    """
    if previous.ndim != 2 or previous.shape != new.shape:
        raise ValueError(f"new: expected [sample, cell] of the shape of previous, {previous.shape}, got {new.shape}")
    for name, values in (("previous", previous), ("new", new)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name}: expected finite responsibilities, got NaN or infinity")
    common = sum(new[rows].T.astype(np.float64) @ previous[rows] for rows in row_blocks(len(new)))
    return linear_sum_assignment(common, maximize=True)[1]


def relabel(read_out: ReadOut, permutation: np.ndarray) -> ReadOut:
    """The same read-out with cell c renamed to `permutation[c]`.

    Args:
        read_out: A read-out with C cells.
        permutation: New number of each cell, `[C]`, each of 0..C-1 once.

    Returns:
        A read-out with the same components, entropy and candidates, whose cells bear their new numbers.

    Raises:
        ValueError: If `permutation` is no permutation of 0..C-1.
    """
    if not np.array_equal(np.sort(permutation), np.arange(read_out.n_cells)):
        raise ValueError(
            f"permutation: expected each of 0..{read_out.n_cells - 1} once, got {np.asarray(permutation).tolist()}"
        )
    return replace(read_out, component_cell=np.asarray(permutation)[read_out.component_cell])
