"""What the fits of an ablation are of: data set, number of samples, epochs. It stands above every table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inference.ablation.plan import Plan
from inference.results.run_folder import RunFolder
from inference.results.text import printable

__all__ = ["origin_of"]


def origin_of(plan: Plan) -> tuple[str, ...]:
    """Short facts on the data and the length of the fits; what no finished fit tells is left out.

    Args:
        plan: The plan.
    """
    settings = [planned.settings for planned in plan.cells if planned.settings is not None]
    return (*_data(settings), *_samples(plan), *_epochs(settings))


def _data(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """`data lattices`; of cells that differ by their data, all names."""
    names = [each.get("dataset") or Path(str(each.get("data") or "")).name for each in settings]
    return [f"data {printable(', '.join(found))}"] if (found := [name for name in dict.fromkeys(names) if name]) else []


def _samples(plan: Plan) -> list[str]:
    """Of the first finished fit of every cell: `91 samples`, `91 to 500 samples`."""
    done = {fit.cell: folder for fit in reversed(plan.fits) if (folder := RunFolder(fit.folder)).is_complete}
    counts = sorted(
        {count for each in done.values() if (count := each.read_summary(is_whole=False).get("n_samples")) is not None}
    )
    return [f"{_from_to(counts)} samples"] if counts else []


def _epochs(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Those of the training at most, since a fit may stop early: `20 epochs of training at most`."""
    found = sorted({each["training"]["epochs"] for each in settings if "training" in each})
    return [f"{_from_to(found)} epochs of training at most"] if found else []


def _from_to(numbers: Sequence[int]) -> str:
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
