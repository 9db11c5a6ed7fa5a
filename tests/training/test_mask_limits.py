"""Masks, and settings beside them, that are refused in one line."""

from __future__ import annotations

from typing import Any

import pytest
from tiny_fits import settings, tiny_samples

from causalpima.inference.fit import fit
from causalpima.inference.run import Run

MASK = {"spectrum": ("A", "B"), "curve": ("B",)}


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ({"spectrum": ("A",), "curve": ("A",)}, "expected every node in the sight of a modality, got none that sees B"),
        ({"spectrum": ("A", "C"), "curve": ("B",)}, "expected nodes among A, B for spectrum, got C"),
        ({"spectrum": (), "curve": ("A", "B")}, "expected a node that spectrum sees, got none"),
        ({"spectrum": ("A", "A"), "curve": ("B",)}, "expected every node once for spectrum, got A 2 times"),
        ({"spectrum": "AB", "curve": ("B",)}, "expected names of nodes for spectrum, .*, got 'AB'"),
        ({"spectrum": (1,), "curve": ("B",)}, "expected names of nodes for spectrum"),
        (["spectrum"], "expected nodes by modality"),
    ],
    ids=str,
)
def test_a_mask_that_means_nothing(mask: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^mask: {message}"):
        settings(mask=mask)


@pytest.mark.parametrize("mask", [{"spectrum": ("A", "B")}, {**MASK, "image": ("A",)}], ids=["too few", "too many"])
def test_every_modality_is_in_the_mask(mask: Any) -> None:
    with pytest.raises(ValueError, match=r"^mask: expected the nodes that each of spectrum, curve sees, .*, got those"):
        Run(tiny_samples(), settings(mask=mask))


@pytest.mark.parametrize(
    ("name", "value"),
    [("guide__prior_expert", True), ("training__modality_dropout", 0.5), ("distillation__epochs", 2)],
)
def test_settings_of_a_fusion_that_does_not_happen(name: str, value: Any) -> None:
    dotted = name.replace("__", r"\.")
    with pytest.raises(ValueError, match=rf"^{dotted}: expected .* with a mask, got .*; each modality has a block"):
        settings(mask=MASK, **{name: value})


def test_samples_without_any_modality_are_refused_without_naming_the_prior_expert() -> None:
    data = tiny_samples()
    for present, values in zip(data.present.values(), data.modalities.values(), strict=True):
        present[4], values[4] = False, 0
    with pytest.raises(ValueError, match=r"got none for 1 of 41, first sample 4; leave these samples out$"):
        Run(data, settings(mask=MASK))


def test_fit_takes_a_mask_and_then_distils_nothing() -> None:
    data = tiny_samples()
    with pytest.raises(ValueError, match=r"^mask: expected nodes among A, B for curve, got C"):
        fit(data, {"A": 2, "B": 2}, mask={"spectrum": ["A", "B"], "curve": ["C"]})
    with pytest.raises(ValueError, match=r"^distillation\.epochs: "):
        fit(data, config=settings(distillation__epochs=2), mask=MASK)
