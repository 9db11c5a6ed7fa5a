"""What a sweep found: its best trial beside the default, which may be better than every trial."""

from __future__ import annotations

from inference.ablation.metrics import Metric
from inference.ablation.sheets import with_minus
from inference.ablation.table import AblationTable, Row
from inference.results.text import printable

__all__ = ["best_sentence", "best_words", "is_better"]


def is_better(value: float, default: float | None, metric: Metric) -> bool | None:
    """Whether the best trial is better than the default; None where the default has no number."""
    return None if default is None else metric.better * value > metric.better * default


def best_words(name: str, value: float, default: float | None, metric: Metric) -> str:
    """The best trial and the default with their numbers.

    Args:
        name: Name of the best trial.
        value: Its value.
        default: The value of the default; None: a fit of it has none.
        metric: What was to be good.
    """
    best = with_minus(value, metric.digits)
    if default is None:
        return printable(f"{name}, {metric.name} {best}; the default has no number")
    usual = with_minus(default, metric.digits)
    if is_better(value, default, metric):
        return printable(f"{name}, {metric.name} {best}, the default {usual}")
    return printable(
        f"no trial is better than the default ({usual}): {name}, {metric.name} {best}, is the best of them"
    )


def best_sentence(table: AblationTable, metric: Metric) -> str | None:
    """The same for the page; None where no trial has a number of every seed.

    Args:
        table: The default, which is the baseline, and all trials.
        metric: What was to be good.
    """
    means = {row.cell: mean for row in table.rows if (mean := _mean(row, metric)) is not None}
    default = means.pop(table.baseline, None)
    if not means:
        return None
    name = max(means, key=lambda cell: metric.better * means[cell])
    words = best_words(name, means[name], default, metric)
    return f"Sweep: {words}." if words.startswith("no trial") else f"Sweep: the best trial is {words}."


def _mean(row: Row, metric: Metric) -> float | None:
    """The mean over all seeds, which is the value of a trial."""
    found = row.spreads.get(metric.name)
    return None if found is None or len(row.values[metric.name]) < row.n_fits else found.mean
