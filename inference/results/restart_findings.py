"""What several starts found, in sentences: the same on the terminal and in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inference.clusters.choice import DISAGREE_ARI
from inference.results.meaning import is_named
from inference.results.text import format_number, is_number, printable

__all__ = ["agreeing_starts", "restart_rows", "restart_sentences"]

_MOST_NAMED = 8
_MOST_PAIRS = 10
_MODES = {"processes": "each on its own", "batched": "as one computation"}


def restart_sentences(summary: Mapping[str, Any]) -> list[str]:
    """Which start was kept and why, how many failed, and how far the others agree; empty of a single start."""
    found = summary.get("restarts")
    if not found:
        return []
    return [text for text in (_choice(found), _failures(found), _agreement(found), _edges(summary)) if text]


def agreeing_starts(found: Mapping[str, Any]) -> tuple[int, int]:
    """How many other starts that did not fail found the clusters of the kept one, and how many there are.

    Args:
        found: The entry `restarts` of a summary.
    """
    chosen, statuses = found["chosen"], found["statuses"]
    others = [number for number, status in enumerate(statuses) if status == "ok" and number != chosen]
    values = [found["ari"][chosen][number] for number in others]
    return sum(is_number(value) and value >= DISAGREE_ARI for value in values), len(others)


def _choice(found: Mapping[str, Any]) -> str:
    entropies, chosen = found["entropies"], found["chosen"]
    others = sorted(e for number, e in enumerate(entropies) if number != chosen and is_number(e))
    if not is_number(entropies[chosen]):
        return f"None of {found['n']} starts came to an end."
    beside = f", of the others {_range(others)}" if others else ""
    return (
        f"Start {chosen} of 0 to {found['n'] - 1} ({_MODES[found['mode']]}) is kept: "
        f"{found['n_occupied'][chosen]} cells are occupied, and its entropy of q(N|X) is "
        f"{entropies[chosen]:.3f} nats{beside}."
    )


def _range(values: Sequence[float]) -> str:
    low, high = f"{values[0]:.3f}", f"{values[-1]:.3f}"
    return low if low == high else f"{low} to {high}"


def _failures(found: Mapping[str, Any]) -> str:
    counts = {status: found["statuses"].count(status) for status in ("collapsed", "diverged")}
    words = [f"{count} {status}" for status, count in counts.items() if count]
    return f"{' and '.join(words)} of {found['n']} starts." if words else ""


def _agreement(found: Mapping[str, Any]) -> str:
    agreement = found.get("agreement")
    if not agreement or not agreement["n_compared"]:
        return ""
    nodes = [f"{printable(name)} {share:.3f}" for name, share in list(agreement["nodes"].items())[:_MOST_NAMED]]
    return (
        f"Agreement with the others that did not fail ({agreement['n_compared']}), as a mean: ARI "
        f"{agreement['ari']:.3f}; with aligned cells, samples of the same outcome {', '.join(nodes)}."
    )


def _edges(summary: Mapping[str, Any]) -> str:
    """How often pairs of nodes are joined over the starts; empty where that is not known, or nodes have no meaning."""
    found = (summary.get("restarts") or {}).get("edge_frequency")
    if not found or found["n_graphs"] < 2 or not is_named(summary):
        return ""
    names = [printable(name) for name in summary["graph"]["node_names"]]
    pairs = [
        f"{names[i]} - {names[j]} {format_number(found['joined'][i][j], 2)}"
        for i in range(len(names))
        for j in range(i + 1, len(names))
    ]
    more = f" and {len(pairs) - _MOST_PAIRS} more" if len(pairs) > _MOST_PAIRS else ""
    listed = ", ".join(pairs[:_MOST_PAIRS]) + more
    return f"Joined in the best graph of {found['n_graphs']} starts, as a share: {listed}." if pairs else ""


def restart_rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """A row per start, the clearest first: number, status, entropy, occupied cells, ARI with the kept one, score."""
    found = summary.get("restarts")
    if not found:
        return []
    accuracies = found.get("cluster_accuracies") or [None] * found["n"]
    return [
        [
            f"{number} (kept)" if number == found["chosen"] else str(number),
            printable(found["statuses"][number]),
            format_number(found["entropies"][number]),
            str(found["n_occupied"][number]),
            format_number(found["ari"][found["chosen"]][number]),
            format_number(accuracies[number]),
        ]
        for number in sorted(range(found["n"]), key=lambda number: _order(found, number))
    ]


def _order(found: Mapping[str, Any], number: int) -> tuple[bool, float]:
    """Starts that failed come last, whatever their entropy."""
    entropy = found["entropies"][number]
    return found["statuses"][number] != "ok", entropy if is_number(entropy) else float("inf")
