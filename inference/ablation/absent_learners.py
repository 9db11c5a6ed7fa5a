"""Cells whose classical learner (`model.graph=posthoc:...`) did not run after the fit, and why."""

from __future__ import annotations

from inference.ablation.plan import Plan
from inference.results.learned_findings import left_out_sentence
from inference.results.run_folder import RunFolder

__all__ = ["absent_learners"]


def absent_learners(plan: Plan) -> tuple[str, ...]:
    """A sentence per cell and reason, with the seeds where it holds; of fits that are finished.

    Args:
        plan: The plan, whose run folders are read.
    """
    seeds: dict[tuple[str, str], list[int]] = {}
    for fit in plan.fits:
        reason = (
            left_out_sentence(RunFolder(fit.folder).read_summary(is_whole=False))
            if RunFolder(fit.folder).is_complete
            else ""
        )
        if reason:
            seeds.setdefault((fit.cell, reason), []).append(fit.seed)
    return tuple(f"{cell}, seed {', '.join(map(str, found))}: {reason}" for (cell, reason), found in seeds.items())
