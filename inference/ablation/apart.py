"""What is said of scores that are not compared: of other samples than those of the baseline, or in other units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inference.ablation.metrics import Metric
from inference.ablation.scored_samples import HELD_OUT, LABELS, MEASURE
from inference.ablation.table import AblationTable, Row
from inference.results.text import printable

__all__ = ["notes_on_samples", "why_apart"]


def why_apart(row: Row, baseline: Row, metric: Metric) -> str:
    """Why a number of a cell is not compared with that of the baseline, with both sets of samples; empty: it is.

    Args:
        row: The cell.
        baseline: The baseline.
        metric: What is not compared.
    """
    seeds = row.apart.get(metric.name, {})
    if LABELS in seeds.values():
        first = next(seed for seed, kind in seeds.items() if kind == LABELS)
        own, usual = row.scored_on.get(first, "none"), baseline.scored_on.get(first, "none")
        return f"scored on {'other ' if own == usual else ''}{own}, {baseline.cell} on {usual}"
    if HELD_OUT in seeds.values():
        return f"its held-out samples are not those of {baseline.cell}"
    return f"its likelihoods have other units than those of {baseline.cell}" if seeds else ""


def notes_on_samples(table: AblationTable) -> list[str]:
    """A sentence per kind of scores of which some are not compared."""
    return [*_of_labels(table), *_of_held_out(table), *_of_measure(table)]


def _of_labels(table: AblationTable) -> Iterator[str]:
    """That cells with and without labels are scored on other samples, or cells with other data."""
    if not any(metric.is_of_labels for metric in table.metrics):
        return
    cells: dict[str, list[str]] = {}
    for row in table.rows:
        for kind in _kinds(row):
            cells.setdefault(kind, []).append(printable(row.cell))
    if len(cells) > 1:
        told = "; ".join(f"{', '.join(names)}: {kind}" for kind, names in cells.items())
        yield (
            f"Scores against known factors are not of the same samples ({told}): labels that a fit used are left out. "
            "There is no difference between such scores."
        )
    others = [row.cell for row in table.rows if _is_apart(row, LABELS) and len(cells) < 2]
    if others:
        yield (
            f"Scores against known factors are of other samples than those of {printable(table.baseline)} in "
            f"{_listed(others)}: data, split or factors differ. There is no difference between such scores."
        )


def _kinds(row: Row) -> Sequence[str]:
    """`unlabelled samples` or `all samples`, without their number, which may differ from seed to seed."""
    kinds = (words.partition(" ")[2] for words in row.scored_on.values())
    return list(dict.fromkeys("all samples" if kind == "samples" else kind for kind in kinds))


def _of_held_out(table: AblationTable) -> Iterator[str]:
    others = [row.cell for row in table.rows if _is_apart(row, HELD_OUT)]
    if others:
        yield (
            f"Held-out samples are other ones than those of {printable(table.baseline)} in {_listed(others)}: there is "
            "no difference between scores of them."
        )


def _of_measure(table: AblationTable) -> Iterator[str]:
    others = [row.cell for row in table.rows if _is_apart(row, MEASURE)]
    if others:
        yield (
            f"Log p(x) has other units than that of {printable(table.baseline)} in {_listed(others)}, probabilities of "
            "counts or classes in the place of densities, or the reverse: there is no difference between them."
        )


def _is_apart(row: Row, kind: str) -> bool:
    return any(kind in seeds.values() for seeds in row.apart.values())


def _listed(cells: Sequence[str]) -> str:
    return printable(", ".join(cells))
