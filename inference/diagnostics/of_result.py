"""The diagnostics of a fit that is in memory."""

from __future__ import annotations

from inference.diagnostics.diagnose import Diagnosis, FoundRun, diagnose, fresh_bound
from inference.results.arviz_export import to_datatree
from inference.results.fit_result import FitResult
from inference.training.fitted_run import rebuild_result

__all__ = ["diagnose_result"]


def diagnose_result(result: FitResult, draws: int | None = None, seed: int = 0) -> Diagnosis:
    """Run every diagnostic that there is something for (docs/diagnose.md).

    Args:
        result: A fit that did not diverge.
        draws: Draws per held-out sample for a new bound of log p(x); None: the bound of the fit.
        seed: Of the draws.

    Raises:
        ValueError: The fit diverged, or draws are asked for without its samples.
    """
    if result.arrays is None:
        raise ValueError(f"the fit diverged ({result.summary['reason']}); there is nothing to diagnose, fit again")
    if draws is not None and result.data is None:
        raise ValueError("draws: expected the samples of the fit with it, got a result without them; leave it out")
    run = FoundRun(rebuild_result(result), to_datatree(result.arrays), result.summary)
    fresh = None if draws is None or result.data is None else fresh_bound(run, result.data, draws, seed)
    return diagnose(run, fresh)
