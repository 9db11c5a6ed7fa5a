from __future__ import annotations

from pathlib import Path

import numpy as np
from circle_like_fit import texts as texts_in_axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from causalpima.inference.findings.drawing import ACCENT, FAINT, WARNING
from causalpima.inference.reporting.figures.fit import draw_missing, write_missing

NAMES = ["photo", "curve", "mass"]


def observed(n_samples: int) -> np.ndarray:
    shares = np.ones((n_samples, 3))
    shares[1, 0] = 0
    shares[: n_samples // 2, 1] = 0.25
    shares[n_samples // 2 :, 2] = 0
    return shares


def texts(figure: Figure) -> str:
    """Everything that is written in a figure."""
    labels = [label.get_text() for ax in figure.axes for label in (*ax.get_xticklabels(), *ax.get_yticklabels())]
    return "\n".join([texts_in_axes(figure), *labels])


def areas(figure_path: Path) -> np.ndarray:
    """Share of the drawn pixels in the colours of what is there, partly missing and absent, `[modality, colour]`."""
    pixels = np.asarray(Image.open(figure_path))
    colours = [np.rint(255 * np.array(to_rgb(colour))) for colour in (ACCENT, FAINT, WARNING)]
    counts = np.stack([(pixels == colour).all(axis=-1).sum(axis=1) for colour in colours], axis=1)
    rows = np.flatnonzero(counts.sum(axis=1))
    blocks = [block for block in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1) if len(block) > 30]  # no type
    sums = np.array([counts[block].sum(axis=0) for block in blocks], dtype=float)
    return sums / sums.sum(axis=1, keepdims=True)


def test_areas_are_shares(tmp_path: Path) -> None:
    for n_samples in (10, 300, 5000):
        shares = observed(n_samples)
        found = areas(write_missing(tmp_path / "m.png", NAMES, shares))
        there, present = shares.mean(axis=0), (shares > 0).mean(axis=0)
        expected = np.stack([there, present - there, 1 - present], axis=1)
        np.testing.assert_allclose(found, expected, atol=0.02)


def test_few_samples_are_named_many_are_counted() -> None:
    few = texts(draw_missing(NAMES, observed(10), [f"S{i}" for i in range(10)]))
    assert "S9" in few
    assert "9 of 10" in few
    many = texts(draw_missing(NAMES, observed(5000), [f"S{i}" for i in range(5000)]))
    assert "S9" not in many
    assert "Each column stands for 16 to 17 samples" in many
    assert "4999 of 5000" in many


def test_booleans_and_one_sample() -> None:
    assert "1 of 1" in texts(draw_missing(["photo"], np.array([[True]])))


def test_of_many_modalities_those_that_lack_most_are_shown() -> None:
    shares = np.ones((20, 60))
    shares[3, [7, 50]] = 0
    shown = texts(draw_missing([f"m{i}" for i in range(60)], shares)).splitlines()
    assert "m7" in shown
    assert "m50" in shown
    assert "m59" not in shown
    assert "20 more modalities, which lack less, are not shown." in shown


def test_columns_of_one_size_are_not_a_range() -> None:
    assert "Each column stands for 2 samples: " in texts(draw_missing(NAMES, observed(600)))
