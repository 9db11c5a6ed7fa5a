"""What goes before the scores of `python -m inference.evaluate`: what the nodes mean, and which samples have labels."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

from inference.results.meaning import meaning_sentence
from inference.results.text import printable

__all__ = ["evaluation_remarks"]

_WIDTH = 80


def evaluation_remarks(
    summary: Mapping[str, Any], found: Mapping[str, Any], factors: Mapping[str, np.ndarray], n_samples: int
) -> str:
    """Plain text of at most 80 columns.

    Args:
        summary: That of the run.
        found: The scores, as `score_run` returns them.
        factors: Codes of the factors that are scored against, `[n]`; negative: not known.
        n_samples: Samples of the run.
    """
    remarks = (meaning_sentence(summary), _not_identified(summary), _labelled(found, factors, n_samples))
    return "\n".join(line for remark in remarks for line in textwrap.wrap(remark, _WIDTH))


def _not_identified(summary: Mapping[str, Any]) -> str:
    identified = (summary.get("identifiability") or {}).get("identified_nodes")
    others = [printable(node) for node in summary.get("nodes", {}) if node not in (identified or ())]
    if identified is None or not others:
        return ""
    return (
        f"Not identified: {', '.join(others)}. Scores by {'this node' if len(others) == 1 else 'these nodes'} hold for "
        "one of several readings that fit equally well."
    )


def _labelled(found: Mapping[str, Any], factors: Mapping[str, np.ndarray], n_samples: int) -> str:
    """How many samples have labels, where some have none."""
    known = int(np.all([codes >= 0 for codes in factors.values()], axis=0).sum()) if factors else 0
    if not factors or known == n_samples:
        return ""
    included = " (training samples included)" if found.get("split", "all") == "all" else ""
    return f"{known} of {n_samples} samples have labels of every factor{included}."
