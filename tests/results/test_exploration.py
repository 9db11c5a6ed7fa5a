"""Table, sentence, values and figure of the exploration."""

from __future__ import annotations

import json
from pathlib import Path

from PIL import Image

from causalpima.inference.clusters.stability import SizeRecord
from causalpima.inference.findings.exploration import Exploration, write_exploration
from causalpima.inference.store.files import to_json

RECORDS = (
    SizeRecord(2, 1.0, 0.99, 0.98, 0.001, 2, 0.5),
    SizeRecord(3, 0.95, 0.9, 0.93, 0.01, 3, 0.9),
    SizeRecord(4, 0.95, 0.7, 0.6, 0.05, 4, 0.91),
)


def test_the_sentence_claims_a_hint() -> None:
    found = Exploration("a", 100, 2, 0, RECORDS)
    assert found.hint == 3
    assert found.sentence().startswith("3 cells are the largest number at which read-outs of random halves")
    assert "and of different starts" in found.sentence()
    assert "a hint, no test" in found.sentence()
    assert found.text().count("*") == 2
    assert "Held out, a mixture of 4 Gaussians is likeliest" in found.sentence()


def test_the_largest_that_was_tried_is_said_to_be_so() -> None:
    assert "try more" in Exploration("a", 100, 2, 0, RECORDS[:2]).sentence()


def test_no_hint() -> None:
    found = Exploration("a", 100, 1, 0, (SizeRecord(2, 0.5, 0.1, None, 0.2, 2, None),))
    assert found.hint is None
    assert "no hint" in found.sentence()
    assert "starts agree" not in found.sentence()
    assert " - " in found.text()
    assert "Held out" not in found.sentence()


def test_values_are_plain() -> None:
    plain = json.loads(to_json(Exploration("a", 100, 2, 5, RECORDS).to_dict()))
    assert (plain["hint"], plain["n_starts"], plain["seed"]) == (3, 2, 5)
    assert [each["is_stable"] for each in plain["sizes"]] == [True, True, False]
    assert plain["sizes"][0]["held_out"] == 0.5


def test_the_figure_has_a_panel_less_without_held_out_samples(tmp_path: Path) -> None:
    with_panel = write_exploration(Exploration("a", 100, 2, 0, RECORDS), tmp_path / "a.png")
    bare = tuple(SizeRecord(c, 0.9, 0.9, None, 0.1, c, None) for c in (2, 3))
    without = write_exploration(Exploration("a", 100, 1, 0, bare), tmp_path / "b.png")
    with Image.open(with_panel) as three, Image.open(without) as two:
        assert three.width > two.width > 300
