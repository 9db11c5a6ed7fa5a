"""What a summary says, in sentences and rows: the same on the terminal and in the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from inference.results.calibration_findings import FactorCalibration, calibrations
from inference.results.text import format_number, is_number, printable, shorten

__all__ = [
    "FACTOR_HEAD",
    "Score",
    "ceiling_sentence",
    "cluster_sentence",
    "disentanglement_scores",
    "factor_lines",
    "factor_rows",
    "held_out_sentence",
    "objective_sentence",
    "score_notes",
    "scored_samples",
    "scores",
    "time_sentence",
]

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
        at_random = found["graph"]["random_labelling"] or {}
        scored = "exact search" if found["graph"].get("exact_search") else "strengths"
        yield Score(f"SHD of the {scored}", found["cpdag_shd"], at_random.get("shd"), 0.0, digits=0)


FACTOR_HEAD = ("accuracy (guess)", "NMI", "ARI", "calibration error")
"""Columns of `factor_rows`, after the name."""

_FACTOR_COLUMNS = (20, 18, 7, 7, 17)

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
