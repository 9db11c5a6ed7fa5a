"""What encoders and decoders are told of every modality, and how much each counts."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from tiny_fits import settings, tiny_samples

from causalpima.inference.data.multimodal import Axis, MultimodalData
from causalpima.inference.data.tensors import Scale, to_tensors
from causalpima.inference.run import Run
from causalpima.inference.training.build import describe_modalities, likelihood_weights, scales
from causalpima.inference.training.config import DecoderConfig, FitConfig, ModalityConfig
from causalpima.models.batch import Modality

CPU = torch.device("cpu")


def modality(name: str, *shape: int) -> Modality:
    return Modality(name, torch.Size(shape))


def config_with(scaling: str, **weights: float) -> FitConfig:
    entries = {name: ModalityConfig(weight=weight) for name, weight in weights.items()}
    return settings(modality=entries, model__likelihood_scaling=scaling)


THREE = {"image": modality("image", 4, 5, 3), "curve": modality("curve", 8), "hardness": modality("hardness")}


def test_weights_are_what_was_asked_for() -> None:
    found = likelihood_weights(config_with("none", image=1.0, curve=2.0, hardness=0.5), THREE)
    assert found == {"image": 1.0, "curve": 2.0, "hardness": 0.5}


def test_rescaled_every_modality_counts_as_if_it_had_the_mean_number_of_elements() -> None:
    """60, 8 and 1 elements: 23 on average."""
    found = likelihood_weights(config_with("dimension", image=1.0, curve=2.0, hardness=0.5), THREE)
    assert found == pytest.approx({"image": 23 / 60, "curve": 2 * 23 / 8, "hardness": 0.5 * 23})
    sizes = {"image": 60, "curve": 8, "hardness": 1}
    plain = likelihood_weights(config_with("dimension", image=1.0, curve=1.0, hardness=1.0), THREE)
    assert sum(plain[name] * size for name, size in sizes.items()) == pytest.approx(sum(sizes.values()))


def test_equal_sizes_are_left_alone_by_rescaling() -> None:
    two = {"a": modality("a", 6), "b": modality("b", 2, 3)}
    assert likelihood_weights(config_with("dimension", a=1.0, b=3.0), two) == {"a": 1.0, "b": 3.0}


# A spectrum of six elements and a curve of eight, which is to count four times: seven elements on average.
@pytest.mark.parametrize(
    ("scaling", "expected"),
    [("none", {"spectrum": 1.0, "curve": 4.0}), ("dimension", {"spectrum": 7 / 6, "curve": 4 * 7 / 8})],
)
def test_the_model_gets_them(scaling: str, expected: dict[str, float]) -> None:
    config = settings(model__likelihood_scaling=scaling)
    curve = dataclasses.replace(config.modality["curve"], weight=4.0)
    run = Run(tiny_samples(), dataclasses.replace(config, modality={**config.modality, "curve": curve}))
    assert run.state.model.weights == pytest.approx(expected)
    assert run.state.pretraining_model.weights == run.state.model.weights


@pytest.mark.parametrize(
    ("likelihood", "expected"),
    [
        ("normal", Scale(True, "asinh", 2.0)),
        ("student_t", Scale(True, "asinh", 2.0, robust=True)),
        ("bernoulli", Scale(standardise=False, has_offset=False)),
        ("categorical", Scale(standardise=False, has_offset=False)),
        ("poisson", Scale(standardise=False, has_offset=False)),
        ("negative_binomial", Scale(standardise=False, has_offset=False)),
    ],
)
def test_discrete_values_are_taken_as_they_are(likelihood: Any, expected: Scale) -> None:
    discrete = likelihood not in ("normal", "student_t")
    entry = ModalityConfig(
        decoder=DecoderConfig(likelihood=likelihood),
        transform="identity" if discrete else "asinh",
        transform_knee=2.0,
    )
    assert scales(settings(modality={"a": entry})) == {"a": expected}


def of_every_kind() -> MultimodalData:
    """Thirty samples: a curve with positions and gaps, an image, codes of four categories, one of them held out."""
    rng, n = np.random.default_rng(0), 30
    curve, observed = rng.normal(5, 2, (n, 4)).astype(np.float32), rng.random((n, 4)) < 0.7
    codes = rng.integers(0, 3, (n, 2)).astype(np.float32)
    codes[-1] = 3  # in a sample that is held out
    present: dict[str, np.ndarray] = {
        "curve": np.asarray(observed.any(axis=1)),
        "image": np.ones(n, bool),
        "codes": np.ones(n, bool),
    }
    return MultimodalData(
        name="all",
        modalities={
            "curve": np.where(observed, curve, 0).astype(np.float32),
            "image": rng.random((n, 3, 4, 1)).astype(np.float32),
            "codes": codes,
        },
        present=present,
        kinds={"curve": "curve", "image": "image", "codes": "vector"},
        observed={"curve": observed},
        axes={"curve": Axis("strain", np.array([0.0, 0.5, 1.5, 4.0]), "%")},
        units={"curve": "MPa"},
    )


def test_description() -> None:
    data = of_every_kind()
    codes = ModalityConfig(decoder=DecoderConfig(likelihood="categorical"))
    config = settings(modality={"curve": ModalityConfig(), "image": ModalityConfig(), "codes": codes})
    train = np.arange(30) < 25
    training = to_tensors(data, train, scales(config), CPU).subset(np.flatnonzero(train))
    found = describe_modalities(data, training, config)
    curve = found["curve"]
    assert curve.positions is not None
    assert curve.positions.tolist() == [0.0, 0.5, 1.5, 4.0]
    assert (curve.position_name, curve.position_unit, curve.unit) == ("strain", "%", "MPa")
    assert (curve.kind, curve.event_shape, curve.has_gaps, curve.n_categories) == ("curve", (4,), True, 1)
    assert (found["image"].kind, found["image"].event_shape, found["image"].positions) == ("image", (3, 4, 1), None)
    assert (found["image"].has_gaps, found["image"].unit) == (False, "")
    assert found["codes"].n_categories == 4, "also of samples that are held out"
    assert found["curve"].standardisation is training.standardisation["curve"]


def test_mean_is_that_of_the_measured_training_values_on_the_scale_of_the_model() -> None:
    data = of_every_kind()
    entry = ModalityConfig(standardise=False)
    codes = ModalityConfig(decoder=DecoderConfig(likelihood="categorical"))
    config = settings(modality={"curve": entry, "image": ModalityConfig(), "codes": codes})
    train = np.arange(30) < 25
    training = to_tensors(data, train, scales(config), CPU).subset(np.flatnonzero(train))
    found = describe_modalities(data, training, config)
    by_hand = data.modalities["curve"][:25][data.observed["curve"][:25]].astype(np.float64).mean()
    assert found["curve"].mean == pytest.approx(by_hand)
    assert found["image"].mean == pytest.approx(0, abs=1e-6), "standardised"
    assert found["codes"].mean == pytest.approx(data.modalities["codes"][:25].mean())


def test_values_that_a_likelihood_cannot_have_are_refused() -> None:
    data = of_every_kind()
    config = settings(
        modality={
            "curve": ModalityConfig(decoder=DecoderConfig(likelihood="poisson")),
            "image": ModalityConfig(),
            "codes": ModalityConfig(),
        }
    )
    training = to_tensors(data, np.ones(30, bool), scales(config), CPU)
    with pytest.raises(ValueError, match="curve"):
        describe_modalities(data, training, config)
