"""Fits that are finished but not scored by `inference.evaluate`: their numbers would be missing without a word."""

from __future__ import annotations

from collections.abc import Collection

from inference.ablation.plan import Plan
from inference.results.run_folder import RunFolder

__all__ = ["absent_scores"]


def absent_scores(plan: Plan, scored: Collection[str]) -> tuple[str, ...]:
    """A sentence per cell of which finished fits have no `evaluate.json`; those that diverged cannot have one.

    Args:
        plan: The plan, whose run folders are read.
        scored: Names of the cells whose fits are to be scored.
    """
    seeds: dict[str, list[int]] = {}
    for fit in plan.fits:
        folder = RunFolder(fit.folder)
        is_finished = folder.is_complete and folder.posterior.is_file()
        if fit.cell in scored and is_finished and not (fit.folder / "evaluate.json").is_file():
            seeds.setdefault(fit.cell, []).append(fit.seed)
    return tuple(
        f"{cell}, seed {', '.join(map(str, found))}: finished, but not scored by inference.evaluate, so that numbers "
        "of it are missing; their logs may say why, and the same command again scores them."
        for cell, found in seeds.items()
    )
