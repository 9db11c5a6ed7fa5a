"""The table and the picture of the generated data sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from known_truth import contact_sheet, row_of
from matplotlib.image import imread

from causalpima.examples.circle_truths import true_joint
from causalpima.examples.circle_views import circles_views
from causalpima.examples.pendulum import pendulum


def test_a_row_tells_graph_ceiling_and_chance() -> None:
    row = row_of("circles_chain", 3, n_samples=500, rare=True)
    assert (row.name, row.edges, row.n_cells) == ("circles_chain_rare", "hue → radius, radius → shift", 8)
    assert row.rarest == pytest.approx(true_joint("chain", rare=True).min())
    assert 0.95 < row.ceiling < 1
    assert 0.5 < row.worst < row.mean < row.ceiling


def test_no_edges_are_told_as_none() -> None:
    assert row_of("circles", 3, n_samples=200).edges == "none"


def test_the_sheet_has_a_line_per_modality(tmp_path: Path) -> None:
    contact_sheet([circles_views(200), pendulum(200)], tmp_path / "sheet.png")
    contact_sheet([pendulum(200)] * 2, tmp_path / "two.png")
    four, two = (imread(tmp_path / name) for name in ("sheet.png", "two.png"))
    assert four.shape[0] == pytest.approx(2 * two.shape[0], abs=2)
    assert np.ptp(four[..., :3]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sheet.png", "two.png"]
