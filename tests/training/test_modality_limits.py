"""Settings of a modality that contradict each other are refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from causalpima.inference.training.config import DecoderConfig, FitConfig, ModalityConfig, TrainingConfig


def fit_config(transform: Any = "identity", **decoder: Any) -> FitConfig:
    return FitConfig({"A": 2}, modality={"x": ModalityConfig(decoder=DecoderConfig(**decoder), transform=transform)})


@pytest.mark.parametrize(
    "settings",
    [
        {"kind": "linear"},
        {"kind": "mylab:Law", "source": "both", "options": {"n": 3}},
        {"likelihood": "student_t", "transform": "asinh"},
        {"likelihood": "poisson", "per_cell": True},
    ],
)
def test_what_goes_together_is_taken(settings: dict[str, Any]) -> None:
    assert fit_config(**settings).modality["x"].decoder.kind == settings.get("kind", "mlp")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "spline"}, r"^modality\.x\.decoder\.kind: expected one of mlp, .*piecewise_linear.*, got 'spline'$"),
        ({"kind": "linear", "likelihood": "poisson"}, r"^modality\.x\.decoder\.likelihood: expected normal for a phys"),
        ({"kind": "linear", "per_cell": True}, r"^modality\.x\.decoder\.per_cell: expected false for a physics law"),
        ({"options": {"n": 3}}, r"^modality\.x\.decoder: expected options and source for a physics law alone"),
        ({"source": "latent"}, r"^modality\.x\.decoder: expected options and source for a physics law alone"),
        (
            {"likelihood": "poisson", "transform": "log"},
            r"^modality\.x\.transform: expected identity for likelihood po",
        ),
    ],
)
def test_contradictions_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_config(**settings)


def test_some_samples_must_be_left_for_training() -> None:
    with pytest.raises(ValueError, match=r"^training: expected validation_fraction and test_fraction of less than 1"):
        FitConfig({"A": 2}, training=TrainingConfig(validation_fraction=0.5, test_fraction=0.5))
