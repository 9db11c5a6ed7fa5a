"""What a summary says, in sentences and rows: the same on the terminal and in the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

from causalpima.inference.clusters.clustering import DISAGREE_ARI, UNCLEAR_ENTROPY, collapse_reason, occupied_from
from causalpima.inference.findings.meaning import withheld_sentence
from causalpima.inference.findings.restarts import agreeing_starts
from causalpima.inference.findings.verdicts import FEW_SCORED, Verdict
from causalpima.inference.store.text import format_number, is_number, printable, shorten

__all__ = [
    "FACTOR_HEAD",
    "FactorCalibration",
    "FitVerdict",
    "Score",
    "State",
    "calibrations",
    "ceiling_sentence",
    "cluster_sentence",
    "disentanglement_scores",
    "factor_lines",
    "factor_rows",
    "fit_verdict",
    "held_out_sentence",
    "objective_sentence",
    "score_notes",
    "scored_samples",
    "scores",
    "time_sentence",
]


# Whether q(N|X) says how often it is right, against every known factor by itself.


_CALIBRATED, _MISCALIBRATED = 0.05, 0.1
_LEAST_REDUCTION = 0.5


@dataclass(frozen=True)
class FactorCalibration:
    """Calibration against one factor.

    Attributes:
        factor: Its name; `all factors` for their joint levels, of runs that were scored against no other.
        n_samples: Samples in which it is known.
        error: Expected calibration error; None where it was not computed.
        expected: What it would be on average if q(N|X) were right.
        largest: What it would exceed in one of twenty cases if q(N|X) were right.
        reduction: By which share the clusters reduce the errors of a constant guess (Goodman and Kruskal's λ); None
            where it is not known.
    """

    factor: str
    n_samples: int
    error: float | None
    expected: float
    largest: float
    reduction: float | None = None

    @property
    def skipped(self) -> str:
        """Why the error says nothing of q(N|X); empty where it does.

        Clusters that are other groups than the factor's are wrong about it, however right they are about themselves.
        """
        if self.n_samples < FEW_SCORED:
            return f"{self.n_samples} samples with {self.factor} do not tell it"
        if self.error is None or (self.reduction is not None and self.reduction < _LEAST_REDUCTION):
            return f"the clusters are other groups than those of {self.factor}"
        return ""

    @property
    def verdict(self) -> Verdict:
        """By how far the error is above what chance leaves of a right q(N|X)."""
        if self.skipped or self.error is None:
            return "skipped"
        if self.error <= max(self.largest, self.expected + _CALIBRATED):
            return "passes"
        return "unclear" if self.error <= self.expected + _MISCALIBRATED else "fails"


def calibrations(evaluation: Mapping[str, Any] | None) -> list[FactorCalibration]:
    """Against every factor of the entry `evaluation` of a summary; empty without known factors."""
    scores = evaluation or {}
    if scores.get("factors"):
        return [_of_factor(name, found) for name, found in scores["factors"].items()]
    if scores.get("calibration"):
        return [_made("all factors", scores.get("n_samples", FEW_SCORED), scores["calibration"], None)]
    return []


def _of_factor(name: str, found: Mapping[str, Any]) -> FactorCalibration:
    guess = found["guess"]
    has_reduction = is_number(found["accuracy"]) and guess < 1
    reduction = (found["accuracy"] - guess) / (1 - guess) if has_reduction else 0.0
    return _made(printable(name), found["n_samples"], found["calibration"] or {}, reduction)


def _made(name: str, n_samples: int, found: Mapping[str, Any], reduction: float | None) -> FactorCalibration:
    expected = found.get("ece_if_calibrated") or 0.0
    largest = found.get("ece_95_if_calibrated") or expected
    return FactorCalibration(name, n_samples, found.get("ece"), expected, largest, reduction)


Summary = Mapping[str, Any]


class Score(NamedTuple):
    """A score, that of the same clusters named at random, and that of Bayes; None: unknown or without meaning."""

    name: str
    value: float | None
    random_names: float | None = None
    ceiling: float | None = None
    digits: int = 3

    def texts(self) -> tuple[str, str, str]:
        """The three numbers; what counts edges (no digits) has one digit as a mean over random names."""
        of_mean = self.digits or 1
        digits = (self.digits, of_mean, self.digits)
        numbers = (self.value, self.random_names, self.ceiling)
        fit, at_random, ceiling = (format_number(*pair) for pair in zip(numbers, digits, strict=True))
        return fit, at_random, ceiling


def cluster_sentence(summary: Summary) -> str:
    """How many clusters there are of those asked for; empty where there is no result."""
    clusters = summary.get("clusters")
    if not clusters:
        return ""
    effective = format_number(clusters.get("effective_number"), 2)
    return f"{clusters['n_occupied']} of {clusters['n_requested']} occupied, effective number {effective}"


def scores(summary: Summary) -> list[Score]:
    """Scores against the known factors; empty without them."""
    found = summary.get("evaluation")
    if not found:
        return []
    named_at_random = found.get("random_labelling_baseline") or {}
    nodes = found.get("assignment") or {}
    return [
        Score("cluster accuracy", found.get("cluster_accuracy"), None, found.get("bayes_ceiling")),
        Score("node accuracy, mean", found.get("node_accuracy_mean"), named_at_random.get("mean")),
        Score("node accuracy, worst", found.get("node_accuracy_worst"), named_at_random.get("worst")),
        *(
            Score(f"- {printable(factor)}" + (f", by {printable(nodes[factor])}" if nodes.get(factor) else ""), value)
            for factor, value in (found.get("node_accuracy") or {}).items()
        ),
        *_as_named(found),
        Score("NMI of clusters", found.get("nmi")),
        Score("ARI of clusters", found.get("ari")),
        *_further_scores(found),
    ]


def _as_named(found: Mapping[str, Any]) -> Iterator[Score]:
    """Accuracy without matching, where names or labels called the outcomes."""
    if found.get("named_accuracy_worst") is not None:
        yield Score("worst node, as named", found["named_accuracy_worst"], found.get("named_accuracy_random"))


def _further_scores(found: Mapping[str, Any]) -> Iterator[Score]:
    """Calibration and graph, as far as they are there."""
    if found.get("calibration") and not factor_rows(found):
        yield Score("calibration error", found["calibration"]["ece"])
    if found.get("cpdag_shd") is not None:
        graph = found.get("graph") or {}
        at_random = graph.get("random_labelling") or {}
        scored = "exact search" if graph.get("exact_search") else "strengths"
        yield Score(f"SHD of the {scored}", found["cpdag_shd"], at_random.get("shd"), 0.0, digits=0)


FACTOR_HEAD = ("accuracy (guess)", "NMI", "ARI", "calibration error")
"""Columns of `factor_rows`, after the name."""

_FACTOR_COLUMNS = (19, 17, 7, 7, 19)

_FACTOR_NOTE = (
    "By factor: every cluster is read as its most frequent level, or every level as its cluster where there are more "
    "levels; in brackets what the largest alone reaches, and the calibration error of right probabilities. Cluster "
    "accuracy, NMI and ARI above are of the joint levels of all factors."
)


def factor_rows(found: Mapping[str, Any]) -> list[list[str]]:
    """Texts of every known factor by itself: its name, then `FACTOR_HEAD`; empty of one alone, which is all factors.

    Args:
        found: The entry `evaluation` of a summary.
    """
    factors = found.get("factors") or {}
    if len(factors) < 2:
        return []
    errors = {one.factor: one for one in calibrations(found)}
    return [
        [
            printable(name),
            f"{format_number(entry['accuracy'])} ({format_number(entry['guess'])})",
            format_number(entry["nmi"]),
            format_number(entry["ari"]),
            _error_text(errors[printable(name)]),
        ]
        for name, entry in factors.items()
    ]


def factor_lines(found: Mapping[str, Any]) -> list[str]:
    """The same as lines of at most 69 columns, with their head."""
    rows = factor_rows(found)
    return [_factor_line(row) for row in ([["by factor", *FACTOR_HEAD], *rows] if rows else [])]


def _factor_line(row: Sequence[str]) -> str:
    first, *others = _FACTOR_COLUMNS
    cells = "".join(f"{value:>{width}}" for value, width in zip(row[1:], others, strict=True))
    return f"{shorten(row[0], first - 1):<{first}}{cells}".rstrip()


def _error_text(found: FactorCalibration) -> str:
    return "-" if found.skipped else f"{format_number(found.error)} ({format_number(found.expected)})"


def disentanglement_scores(found: Mapping[str, Any]) -> list[Score]:
    """DCI and the gap; empty where they were not computed. Only for fits of factors that are independent."""
    shared = found.get("disentanglement")
    if not shared:
        return []
    random, gaps = shared["random"], list(shared["gap"].values())
    return [
        Score("disentanglement", shared["disentanglement"], random["disentanglement"]),
        Score("completeness", shared["completeness"], random["completeness"]),
        Score("gap to the second node", sum(gaps) / len(gaps), random["gap_mean"]),
        Score("informativeness", shared["informativeness"]),
    ]


def score_notes(summary: Summary) -> list[str]:
    """What must be said below the scores."""
    has_graph = (summary.get("evaluation") or {}).get("cpdag_shd") is not None
    graph = (
        "SHD: structural Hamming distance from the true CPDAG, after the best assignment of nodes and outcomes to the "
        "known factors, which uses the truth."
    )
    by_factor = _FACTOR_NOTE if factor_rows(summary.get("evaluation") or {}) else ""
    return [text for text in (ceiling_sentence(summary), by_factor, graph if has_graph else "") if text]


def scored_samples(summary: Summary) -> str:
    """Which samples the scores are about: `9 test samples`."""
    found = summary.get("evaluation") or {}
    return _count_samples(found.get("n_samples"), found.get("split", "all"))


def ceiling_sentence(summary: Summary) -> str:
    """That the Bayes ceiling is not that of the samples that were scored; empty where it is, or is unknown."""
    found = summary.get("evaluation") or {}
    if found.get("bayes_ceiling") is None or found.get("split", "all") == "all":
        return ""
    return "The Bayes ceiling is that of all samples, not of these alone."


def held_out_sentence(summary: Summary) -> str:
    """log p(x) of held-out samples, and of how many; empty where there are none."""
    found = summary.get("held_out_log_likelihood")
    if not found:
        return ""
    value, error = (format_number(found[key], 2) for key in ("per_sample", "standard_error"))
    samples = _count_samples(found.get("n_samples"), found["split"])
    return f"Held-out log p(x): {value} ± {error} nats per sample ({samples}{_collapsed_bound(found)})."


def _collapsed_bound(found: Mapping[str, Any]) -> str:
    bound = found.get("collapsed_bound")
    if not bound:
        return ""
    value, error = (format_number(bound[key], 2) for key in ("per_sample", "standard_error"))
    return f"; collapsed bound {value} ± {error}"


def _count_samples(count: int | None, split: str) -> str:
    """`9 test samples`, without the number where it is not known."""
    kind = {"all": "", "train": "training"}.get(split, printable(split))
    words = [*([] if count is None else [str(count)]), kind, "sample" if count == 1 else "samples"]
    return " ".join(word for word in words if word)


def objective_sentence(summary: Summary) -> str:
    """The objective per sample; empty where there is none."""
    objective = summary.get("objective")
    if not objective:
        return ""
    if objective.get("split") is None:
        return "none, since there was no epoch of joint training"
    value = format_number(objective.get("per_sample"), 2, "not finite")
    bound = f"{printable(objective.get('name', ''))} bound, {_count_samples(None, objective['split'])}"
    return f"{value} nats per sample ({bound}; higher is better)"


def time_sentence(summary: Summary) -> str:
    """Seconds in all and per phase, and epochs; of several starts, what all of them took."""
    seconds = summary.get("seconds", {})
    phases = ", ".join(f"{phase} {format_number(seconds.get(phase), 1)}" for phase in ("pretraining", "training"))
    spent = f"{format_number(seconds.get('total'), 1)} s ({phases}), {summary.get('epochs', '-')} epochs"
    return f"{_wall_time(summary)}; the kept one {spent}" if summary.get("restarts") else spent


def _wall_time(summary: Summary) -> str:
    """Of all starts; of a run that was resumed, the sum of what each took."""
    starts = summary["restarts"]
    wall = summary.get("seconds", {}).get("all_starts")
    if is_number(wall):
        return f"{format_number(wall, 1)} s wall time of all {starts['n']} starts"
    return f"{format_number(sum(starts['seconds']), 1)} s summed over {starts['n']} starts"


# The verdict on a fit, with its reasons: the same on the terminal, on the page, in `summary.json` and in Python.


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
