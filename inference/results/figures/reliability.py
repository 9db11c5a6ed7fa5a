"""Whether clusters are as often right as q(N|X) says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from inference.results.figures.style import ACCENT, GREY, Space, add_note, note_width, panels

__all__ = ["draw_reliability", "wilson_interval"]

_Z = 1.959964


def draw_reliability(scores: Mapping[str, Any]) -> Figure:
    """Share of right samples against confidence, in bins of equally many samples, with 95 % intervals.

    Args:
        scores: The entry `evaluation` of a summary.
    """
    found = scores["calibration"]
    confidence, accuracy, count = (np.array(found[key], dtype=float) for key in ("confidence", "accuracy", "count"))
    lower, upper = wilson_interval(accuracy, count)
    figure, (ax,) = panels(1, size=(3.2, 3.2), columns=1, space=Space())
    low = max(0.0, 0.05 * np.floor(20 * min(confidence.min(), lower.min()) - 0.5))
    ax.plot([low, 1], [low, 1], color=GREY, linewidth=0.8, linestyle="--")
    # Rounding may leave a share just outside of its own interval.
    errors = np.clip([accuracy - lower, upper - accuracy], 0, None)
    ax.errorbar(confidence, accuracy, errors, fmt="o", color=ACCENT, markersize=4, elinewidth=0.9)
    ax.set(xlim=(low, 1.01), ylim=(low, 1.01), xlabel="confidence: largest q(N|X)", ylabel="share that is right")
    ax.set_aspect("equal")
    add_note(
        figure,
        f"Expected calibration error {found['ece']:.3f} ({len(count)} bins of equally many samples: "
        f"{found['ece_equal_mass']:.3f}); as many samples would give {found['ece_if_calibrated']:.3f} on average if "
        "q(N|X) were right. Dashed: perfect.",
        "Bars: 95 % intervals of the share. Clusters were matched to the true cells one to one.",
        width=note_width(figure),
    )
    return figure


def wilson_interval(share: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """95 % interval of a probability by the share of successes (Wilson 1927).

    Args:
        share: Share of successes.
        count: Number of trials, positive.
    """
    centre = (share + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    half = _Z / (1 + _Z**2 / count) * np.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    return centre - half, centre + half
