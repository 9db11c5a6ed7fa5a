"""What the fits of an ablation are of: data set, number of samples, epochs. It stands above every table."""

from __future__ import annotations

from collections.abc import Mapping
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
    return (*_data(settings[0]), *_samples(plan), *_epochs(settings))


def _data(settings: Mapping[str, Any]) -> list[str]:
    name = settings.get("dataset") or Path(str(settings.get("data") or "")).name
    return [f"data {printable(name)}"] if name else []


def _samples(plan: Plan) -> list[str]:
    """Of the first fit that is finished; other cells may leave samples out, which the table says."""
    done = next((folder for fit in plan.fits if (folder := RunFolder(fit.folder)).is_complete), None)
    count = None if done is None else done.read_summary().get("n_samples")
    return [] if count is None else [f"{count} samples"]


def _epochs(settings: list[Mapping[str, Any]]) -> list[str]:
    """Those of the training at most, since a fit may stop early: `20 epochs at most`, `5 to 40 epochs at most`."""
    found = sorted({each["training"]["epochs"] for each in settings if "training" in each})
    if not found:
        return []
    return [f"{found[0]} epochs at most" if len(found) == 1 else f"{found[0]} to {found[-1]} epochs at most"]
