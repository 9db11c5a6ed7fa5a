"""A result beside the other starts of its run."""

from __future__ import annotations

import dataclasses

from inference.results.fit_result import FitResult
from inference.results.restart_chains import chains
from inference.results.restart_comparison import Comparison
from inference.results.restart_summary import restart_summary
from inference.results.run_folder import RunFolder
from inference.training.restarts.start import found_start

__all__ = ["compared", "compared_again"]


def compared(result: FitResult, comparison: Comparison, mode: str) -> FitResult:
    """The result with what the comparison says, in its summary and its arrays.

    Args:
        result: The kept start.
        comparison: All starts.
        mode: How they were run.
    """
    arrays = None if result.arrays is None else chains(comparison, result.arrays)
    entry = restart_summary(comparison, arrays, mode, list(result.summary["nodes"]))
    return dataclasses.replace(
        result,
        summary={**result.summary, "restarts": entry},
        arrays=None if result.arrays is None else dataclasses.replace(result.arrays, restarts=arrays),
    )


def compared_again(result: FitResult, folder: RunFolder) -> FitResult:
    """The same of a result whose cells got other numbers or names since; as it is where the run had a single start.

    Where the starts are no longer there, what depends on how cells are numbered is left out.

    Args:
        result: The kept start.
        folder: The folder of the run, with its `summary.json` and its starts.

    Raises:
        ValueError: What a start left can't be read.
    """
    before = folder.read_summary().get("restarts")
    if not before:
        return result
    folders = [RunFolder(folder.restarts / str(number)) for number in range(before["n"])]
    if not all(start.is_complete for start in folders):
        entry = {**before, "agreement": None, "edge_frequency": None}
        return dataclasses.replace(result, summary={**result.summary, "restarts": entry})
    starts = [found_start(start, number) for number, start in enumerate(folders)]
    return compared(result, Comparison.of(starts), before["mode"])
