"""Records of a small made-up ablation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from causalpima.inference.ablation.records import METRICS, Metric, Record
from causalpima.inference.ablation.table import AblationTable, table_of

CHOSEN: Sequence[Metric] = tuple(METRICS[name] for name in ("cluster_accuracy", "cross_modal_r2", "cpdag_shd"))


def record(cell: str, seed: int, accuracy: float | None, status: str = "ok", shd: float | None = None) -> Record:
    metrics: Mapping[str, float | None] = {
        "cluster_accuracy": accuracy,
        "cross_modal_r2": None,
        "cpdag_shd": shd,
    }
    reason = "" if status == "ok" else f"why it is {status}"
    return Record(cell, seed, status, reason, {"arm": cell}, f"runs/{cell}/seed-{seed}", metrics)


# Paired by seed `b` is better by 0.1, 0.2 and, of the collapsed seed, 0.3; unpaired by another number, since it lacks
# seed 3.
RECORDS = (
    record("a", 0, 0.5, shd=1.0),
    record("a", 1, 0.6, shd=2.0),
    record("a", 2, 0.1),
    record("a", 3, 0.9),
    record("b", 0, 0.6, shd=1.0),
    record("b", 1, 0.8, shd=1.0),
    record("b", 2, 0.4, "collapsed"),
    record("b", 3, None, "diverged"),
    *(Record("c<i>", seed, "refused", "arm: expected one, got c_i & co", {"objective": "c"}) for seed in range(4)),
)


def table() -> AblationTable:
    return table_of(RECORDS, CHOSEN, "a")
