"""Whether a configuration can be fitted to a data set at all."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from tiny_fits import settings, tiny_samples

from causalpima.inference.data.reading import as_multimodal
from causalpima.inference.data.roles import ReadOptions
from causalpima.inference.run import Run
from causalpima.inference.training.config import EncoderConfig, ModalityConfig, default_config
from causalpima.inference.training.prepared_run import check_feasible


@pytest.mark.parametrize(
    ("outcomes", "number"),
    [([3, 11], "33"), ([34], "34"), ([2] * 6, "64"), ([2] * 40, r"about 10\^12"), ([9] * 2000, r"about 10\^1908")],
)
def test_more_cells_than_training_samples_are_refused_with_their_number(outcomes: list[int], number: str) -> None:
    nodes = {f"N{i}": value for i, value in enumerate(outcomes)}
    if number == "33":
        Run(tiny_samples(41), settings(nodes=nodes))
        return
    with pytest.raises(
        ValueError, match=rf"^nodes: .* as cells, got 33 samples for {number} cells .*; give fewer nodes"
    ):
        Run(tiny_samples(41), settings(nodes=nodes))


@pytest.mark.parametrize(
    ("modality", "got"), [({}, "none"), ({"spectrum": ModalityConfig()}, "spectrum"), ({"x": ModalityConfig()}, "x")]
)
def test_settings_for_other_modalities_are_refused(modality: Any, got: str) -> None:
    with pytest.raises(
        ValueError, match=rf"^modality: expected settings for spectrum, curve, .* tiny, got settings for {got}$"
    ):
        Run(tiny_samples(), settings(modality=modality))


def test_samples_without_any_modality_need_the_prior_expert() -> None:
    data = tiny_samples()
    for mask, values in zip(data.present.values(), data.modalities.values(), strict=True):
        mask[[5, 7]], values[[5, 7]] = False, 0
    with pytest.raises(
        ValueError, match=r"^tiny: .*, got none for 2 of 41, first sample 5; leave these samples out, or set"
    ):
        Run(data, settings())
    run = Run(data, settings(guide__prior_expert=True))
    run.train()
    assert run.finish().status in ("ok", "collapsed")


def test_a_network_that_does_not_suit_the_data_is_refused_by_name() -> None:
    entry = settings().modality["curve"]
    for part, kind in (("encoder", "convolutional"), ("decoder", "convolutional")):
        other = dataclasses.replace(entry, **{part: dataclasses.replace(getattr(entry, part), kind=kind)})
        with pytest.raises(ValueError, match="expected"):
            Run(tiny_samples(), settings(modality={"spectrum": entry, "curve": other}))


def test_a_modality_of_held_out_samples_alone_is_refused() -> None:
    rng = np.random.default_rng(0)
    split = np.array(["train"] * 6 + ["validation"] * 2 + ["test"] * 2)
    hardness = np.where(split == "train", np.nan, rng.normal(size=10))
    data = as_multimodal({"stress": rng.normal(size=(10, 3)), "hardness": hardness})
    config = default_config(data, {"phase": 2})
    with pytest.raises(ValueError, match="hardness: expected it in some training samples, got it in 4 of 10 samples"):
        check_feasible(data, config, split)
    hardness[0] = 1.0
    check_feasible(as_multimodal({"stress": rng.normal(size=(10, 3)), "hardness": hardness}), config, split)


def test_distillation_needs_samples_with_two_modalities() -> None:
    data = tiny_samples()
    half = np.arange(data.n_samples) < 20
    present = {"spectrum": half, "curve": ~half}
    values = {name: np.where(present[name][:, None], v, 0) for name, v in data.modalities.items()}
    apart = dataclasses.replace(data, present=present, modalities=values)
    with pytest.raises(ValueError, match=r"^distillation\.epochs: expected 0 where no sample has two modalities"):
        Run(apart, settings(distillation__epochs=3))
    assert default_config(apart, {"A": 2}).distillation.epochs == 0
    assert default_config(data, {"A": 2}).distillation.epochs == 20


def test_short_curves_are_encoded_by_a_perceptron() -> None:
    data = as_multimodal({"load": np.random.default_rng(0).normal(size=(30, 4))}, ReadOptions(kinds={"load": "curve"}))
    assert default_config(data, {"A": 2}).modality["load"].encoder.kind == "mlp"
    forced = dataclasses.replace(
        default_config(data, {"A": 2}).modality["load"], encoder=EncoderConfig("curve", (4, 8))
    )
    with pytest.raises(ValueError, match=r"^modality\.load: curve encoder: .*; choose another encoder\.kind"):
        Run(data, dataclasses.replace(default_config(data, {"A": 2}), modality={"load": forced}))
