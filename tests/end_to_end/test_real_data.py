"""Measured data, from samples to run folder in a few epochs; coupons that lack a curve are used all the same."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import svi
from shared_data import mfeat, nutrimouse, spoken_digits

from causalpima.examples.resin_coupons import resin_coupons
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.findings import collect
from causalpima.inference.findings.collect import DrawBounds
from causalpima.inference.fit import fit
from causalpima.inference.store.posterior_file import read_posterior
from causalpima.inference.training.config import (
    DecoderConfig,
    EncoderConfig,
    FitConfig,
    GraphConfig,
    ModalityConfig,
    ModelConfig,
    PretrainingConfig,
    ReadOutConfig,
    TrainingConfig,
)

FILES = {"config.yaml", "summary.json", "metrics.jsonl", "posterior.nc", "report.html", "checkpoint", "figures"}


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "DrawBounds", lambda: DrawBounds(draws=8, predictive_elements=2**16))


def check_folder(folder: Path) -> dict[str, Any]:
    """All files are there and say so of each other; returns the summary."""
    assert {path.name for path in folder.iterdir()} == FILES
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    figures = list((folder / "figures").iterdir())
    page = (folder / "report.html").read_text()
    assert page.count("data:image/png;base64,") == len(figures) > 0
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == summary["epochs"]
    for name in summary["modalities"]:
        assert name in page
    return summary


def responsibilities(folder: Path) -> np.ndarray:
    values: np.ndarray = read_posterior(folder / "posterior.nc")["variational"]["responsibilities"].to_numpy()
    assert np.isfinite(values).all()
    np.testing.assert_allclose(values.sum(axis=1), 1.0, atol=1e-5)
    return values


def test_coupons_that_lack_a_curve_are_used(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    flags = {
        "dataset": "resin_coupons",
        "dataset_options.shrink": 12,
        "pretraining.epochs": 8,
        "training.epochs": 1,
        "graph.start_steps": 10,
        "read_out.n_init": 1,
        "output_dir": folder,
    }
    outcome = svi(*(word for name, value in flags.items() for word in (f"--{name}", value)))
    assert (outcome.status, outcome.err) == (0, ""), outcome
    summary = check_folder(folder)
    assert (summary["status"], summary["n_samples"]) == ("ok", 144)
    data = resin_coupons(shrink=12)
    lacking = ~data.present["compression"] | ~data.present["tension"]
    assert lacking.sum() == 9
    assert responsibilities(folder)[lacking].shape == (9, 8)
    assert sum(summary["clusters"]["sizes"]) == 144
    assert "compression: estimate ± standard error" in outcome.out
    check_law(summary["modalities"]["compression"]["physics"], summary["clusters"]["sizes"])


def check_law(cells: Mapping[str, Mapping[str, Mapping[str, Any]]], sizes: list[int]) -> None:
    """Coefficient and exponent in every cell that has samples, inside of their interval where there is one."""
    assert len(cells) == 8
    for size, cell in zip(sizes, cells.values(), strict=True):
        assert [parameter["unit"] for parameter in cell.values()] == ["MPa", ""]
        for parameter in cell.values():
            assert size == 0 or np.isfinite(parameter["value"])
            assert size < 9 or parameter["lower"] < parameter["value"] < parameter["upper"]


SHARED: dict[str, tuple[Callable[[], MultimodalData], dict[str, int]]] = {
    "nutrimouse": (nutrimouse, {"genotype": 2}),
    "mfeat": (lambda: spread(mfeat(), 300), {"digit": 10}),
    "spoken_digits": (
        lambda: spoken_digits(120, 0, digits=(0, 1), speakers=("jackson", "theo")),
        {"digit": 2, "speaker": 2},
    ),
}


def spread(data: MultimodalData, n: int) -> MultimodalData:
    """So many samples at equal distances: the digits stand in order."""
    rows = np.linspace(0, data.n_samples - 1, n).astype(int)
    modalities, present, factors = (
        {name: values[rows] for name, values in part.items()} for part in (data.modalities, data.present, data.factors)
    )
    return dataclasses.replace(data, modalities=modalities, present=present, factors=factors)


def small(data: MultimodalData, nodes: Mapping[str, int]) -> FitConfig:
    view = ModalityConfig(EncoderConfig(sizes=(16,)), DecoderConfig(sizes=(16,)))
    return FitConfig(
        nodes=nodes,
        model=ModelConfig(latent_dim=4, likelihood_scaling="dimension"),
        pretraining=PretrainingConfig(epochs=8, kl_warmup=8),
        training=TrainingConfig(epochs=2, batch_size=16, learning_rate=1e-2, test_fraction=0.1),
        graph=GraphConfig(start_steps=10),
        read_out=ReadOutConfig(n_init=1),
        modality=dict.fromkeys(data.modalities, view),
    )


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("name", SHARED)
def test_reference_data_end_to_end(name: str, tmp_path: Path) -> None:
    make, nodes = SHARED[name]
    data = make()
    folder = tmp_path / "run"
    result = fit(data, config=small(data, nodes), output_dir=folder)
    assert result.status == "ok"
    summary = check_folder(folder)
    assert summary["dataset"] == name
    assert set(summary["modalities"]) == set(data.modalities)
    assert 0.0 <= summary["evaluation"]["cluster_accuracy"] <= 1.0
    n_cells = int(np.prod(list(nodes.values())))
    assert responsibilities(folder).shape == (data.n_samples, n_cells)
