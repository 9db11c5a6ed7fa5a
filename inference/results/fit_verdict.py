"""The verdict on a fit, with its reasons: the same on the terminal, on the page, in `summary.json` and in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from inference.clusters.choice import DISAGREE_ARI, UNCLEAR_ENTROPY
from inference.clusters.occupancy import collapse_reason, occupied_from
from inference.results.calibration_findings import calibrations
from inference.results.naming_findings import withheld_sentence
from inference.results.restart_findings import agreeing_starts
from inference.results.text import format_number, is_number, printable

__all__ = ["FitVerdict", "State", "fit_verdict"]

Summary = Mapping[str, Any]
State = Literal["clear", "doubtful", "failed"]

_FEW_SAMPLES = 10


@dataclass(frozen=True)
class FitVerdict:
    """How far the clusters of a fit can be believed.

    Attributes:
        state: `failed`: it diverged or collapsed, so that there is no result. `doubtful`: something speaks against its
            clusters. `clear`: nothing that was looked at does, which is no proof of them.
        reasons: A sentence for everything that speaks against it; none of a clear one.
    """

    state: State
    reasons: tuple[str, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """Plain values: the entry `verdict` of a summary."""
        return {**asdict(self), "reasons": list(self.reasons)}


def fit_verdict(summary: Summary) -> FitVerdict:
    """The verdict of a summary: the one that it holds, else (of older runs) what follows from its findings."""
    stored = summary.get("verdict") or {}
    if stored.get("state") in get_args(State):
        return FitVerdict(stored["state"], tuple(map(printable, stored.get("reasons") or ())))
    if summary.get("status") != "ok":
        return FitVerdict("failed", (_failure(summary),))
    reasons = tuple(_doubts(summary))
    return FitVerdict("doubtful" if reasons else "clear", reasons)


def _failure(summary: Summary) -> str:
    if summary.get("status") == "diverged":
        reason = printable(summary.get("reason", "the objective stopped being finite"))
        return f"The fit diverged: {reason}. There is no result; try a smaller learning rate or another seed."
    found = summary.get("clusters", {})
    counts = found.get("n_requested", 0), found.get("n_occupied", 0)
    reason = collapse_reason(*counts, found.get("uncertainty_coefficient"))
    return (
        f"The fit {printable(summary.get('status', 'has no status'))}{f': {reason}' if reason else ''}. Trust neither "
        "clusters nor graph; train longer (more epochs, smaller batches) or try another seed."
    )


def _doubts(summary: Summary) -> Iterator[str]:
    yield from _unclear(summary)
    yield from _starts(summary.get("restarts"))
    yield from _empty_and_small(summary.get("clusters", {}))
    yield from filter(None, [withheld_sentence(summary)])
    yield from _miscalibrated(summary.get("evaluation") or {})


def _unclear(summary: Summary) -> Iterator[str]:
    entropy = summary.get("clusters", {}).get("entropy")
    if is_number(entropy) and entropy > UNCLEAR_ENTROPY:
        starts = f" in the best of {summary['restarts']['n']} starts" if summary.get("restarts") else ""
        yield (
            f"Clusters are not clean: the mean entropy of q(N|X) is {entropy:.3f} nats{starts}, above "
            f"{UNCLEAR_ENTROPY}. Some may be merged or split; try more restarts, longer training or other nodes."
        )


def _starts(found: Summary | None) -> Iterator[str]:
    """A start that could as well have been kept, or most others, found other clusters."""
    if not found:
        return
    chosen, (n_agreeing, n_compared) = found["chosen"], agreeing_starts(found)
    if found["disagreeing"]:
        first = found["disagreeing"][0]
        yield (
            f"Start {first} separates its clusters about as well as the kept start {chosen} (entropy "
            f"{found['entropies'][first]:.3f} and {found['entropies'][chosen]:.3f}), but finds other clusters (ARI "
            f"{found['ari'][chosen][first]:.2f}): these data do not tell which is right. Try more restarts, or fewer "
            "cells."
        )
    elif 2 * n_agreeing < n_compared:
        yield (
            f"{n_agreeing or 'None'} of {n_compared} other starts {'finds' if n_agreeing < 2 else 'find'} the clusters "
            f"of the kept start {chosen} (ARI from {DISAGREE_ARI} on): it may be an accident. Try more restarts, or "
            "fewer cells."
        )


def _empty_and_small(found: Summary) -> Iterator[str]:
    n_empty = found.get("n_requested", 0) - found.get("n_occupied", 0)
    if n_empty > 0:
        yield (
            f"{n_empty} of {found['n_requested']} clusters {'is' if n_empty == 1 else 'are'} not occupied: there are "
            "fewer groups, or some are merged. Try more restarts, or fewer outcomes if a combination is impossible."
        )
    sizes = found.get("sizes") or ()
    least, counted = occupied_from(sum(sizes), len(sizes)) if sizes else 0, found.get("n_groups") or sizes
    n_small = sum(size >= least and count < _FEW_SAMPLES for size, count in zip(sizes, counted, strict=True))
    if n_small:
        yield (
            f"{n_small} cluster{' has' if n_small == 1 else 's have'} fewer than {_FEW_SAMPLES} "
            f"{'independent ' if found.get('n_groups') else ''}samples: what is said of them rests on few."
        )


def _miscalibrated(evaluation: Summary) -> Iterator[str]:
    for one in calibrations(evaluation):
        if one.verdict in ("unclear", "fails"):
            yield (
                f"Against {one.factor} the expected calibration error is {format_number(one.error)}, where "
                f"{one.expected:.3f} is expected of right probabilities: do not take q(N|X) at its word."
            )
