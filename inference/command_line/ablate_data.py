"""What an ablation read from the user's file: the same for all cells, told once before anything runs."""

from __future__ import annotations

from inference.ablation.plan import Plan
from inference.command_line.reading_table import reading_table
from inference.command_line.svi_arguments import parse
from inference.training.run import Run

__all__ = ["data_text"]


def data_text(plan: Plan) -> str | None:
    """Samples, labels and modalities as the baseline reads them; None for data that are generated.

    What its data do not suit is told by the fit, which is refused: there is nothing to say before.

    Args:
        plan: The plan.
    """
    fit = next(fit for fit in plan.fits if fit.cell == plan.baseline)
    arguments = parse(fit.words)
    if arguments.file is None:
        return None
    try:
        return reading_table(Run(arguments.make_data(), arguments.config, arguments.device))
    except ValueError:
        return None
