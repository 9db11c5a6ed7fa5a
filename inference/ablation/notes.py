"""What a reader of the table of an ablation must know to read its numbers rightly."""

from __future__ import annotations

from collections.abc import Iterator

from inference.ablation.apart import notes_on_samples
from inference.ablation.sheets import failures_of, most_pairs
from inference.ablation.statistics import FEW_SEEDS
from inference.ablation.table import AblationTable
from inference.results.text import printable

__all__ = ["notes"]


def notes(table: AblationTable) -> list[str]:
    """What a reader must know to read the numbers rightly."""
    return list(_notes(table))


def _notes(table: AblationTable) -> Iterator[str]:
    if any(failures_of(row) for row in table.rows):
        yield (
            "Fits that are not ok are counted, not left out: those that collapsed are in the means; those that "
            "diverged, were refused or ended with an error have no numbers, and n says how many are left."
        )
    if most_pairs(table) >= FEW_SEEDS:
        yield "Intervals are of each comparison alone: of twenty about one leaves zero out by chance."
    yield from map(printable, table.remarks)
    yield from notes_on_samples(table)
    yield from _of_nodes(table)
    yield from _units(table)
    if any(metric.name == "objective" for metric in table.metrics):
        yield (
            "The objective of a fit is its own bound, on validation samples where there are some: between different "
            "objectives, priors or data it compares nothing."
        )


def _of_nodes(table: AblationTable) -> Iterator[str]:
    """What scores of nodes are where nobody named them."""
    names = {metric.name for metric in table.metrics}
    if names & {"node_accuracy_mean", "node_accuracy_worst", "cpdag_shd"}:
        yield (
            "Node accuracy, and the SHD by best assignment, are of the assignment of nodes to factors that suits the "
            "truth best: of nodes that nobody named they are no result. Random names reach node_accuracy_chance in the "
            "mean and node_accuracy_worst_chance in the worst node."
        )


def _units(table: AblationTable) -> Iterator[str]:
    """What numbers are in that have no unit in their label."""
    names = {metric.name for metric in table.metrics}
    if names & {"held_out_log_likelihood", "held_out_bound", "held_out_as_trained", "objective"}:
        yield "Log p(x) and bounds are in nats per sample."
    if "entropy" in names:
        yield (
            "Entropy is that of q(N | X) in nats, mean over samples: 0 where every sample is in one cell for certain, "
            "ln of the number of cells where nothing is known. Neither is better in itself."
        )
