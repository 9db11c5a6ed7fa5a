"""What a small fit with gaps, names, a law and counts leaves, from the samples to the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from causalpima.inference.data.multimodal import Axis, MultimodalData
from causalpima.inference.fit import fit
from causalpima.inference.result import FitResult
from causalpima.inference.store.posterior_file import read_posterior
from causalpima.inference.training.config import (
    DecoderConfig,
    FitConfig,
    ModalityConfig,
    PretrainingConfig,
    TrainingConfig,
)

_N = 48
_STRAIN = np.linspace(0.5, 4.0, 8) ** 2


def samples() -> MultimodalData:
    """Two groups: lines of slope 1 and 3 with gaps, of which three samples have none; and counts."""
    rng = np.random.default_rng(0)
    group = np.arange(_N) % 2
    line = (1.0 + 2.0 * group)[:, None] * _STRAIN + 0.05 * rng.standard_normal((_N, 8))
    present = {"line": np.arange(_N) >= 3, "counts": np.ones(_N, dtype=bool)}
    observed = np.broadcast_to(present["line"][:, None], line.shape).copy()
    observed[10:20, 6:] = False
    return MultimodalData(
        "small",
        modalities={
            "line": np.where(observed, line, 0.0).astype(np.float32),
            "counts": rng.poisson(2.0 + 20.0 * group[:, None], (_N, 3)).astype(np.float32),
        },
        present=present,
        kinds={"line": "curve", "counts": "vector"},
        observed={"line": observed},
        axes={"line": Axis("strain", _STRAIN, "%")},
        units={"line": "MPa", "counts": "photons"},
        sample_names=np.array([f"S{i}" for i in range(_N)]),
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[FitResult, Path]:
    line = ModalityConfig(decoder=DecoderConfig("linear", ()))
    counts = ModalityConfig(decoder=DecoderConfig("mlp", (8,), likelihood="poisson"), standardise=False)
    config = FitConfig(
        {"N": 2},
        modality={"line": line, "counts": counts},
        training=TrainingConfig(epochs=4, batch_size=8),
        pretraining=PretrainingConfig(epochs=8),
    )
    result = fit(samples(), config=config, seed=0)
    folder = tmp_path_factory.mktemp("run") / "small"
    result.save(folder)
    return result, folder


def test_planted_slopes_stand_in_the_summary_of_the_folder(saved: tuple[FitResult, Path]) -> None:
    summary = json.loads((saved[1] / "summary.json").read_text())
    line, counts = summary["modalities"]["line"], summary["modalities"]["counts"]
    slopes = sorted(cell["slope"]["value"] for cell in line["physics"].values())
    for found, planted in zip(slopes, (1.0, 3.0), strict=True):
        entry = next(e["slope"] for e in line["physics"].values() if e["slope"]["value"] == found)
        assert abs(found - planted) < 4 * entry["standard_error"]
        assert entry["lower"] < found < entry["upper"]
    assert line["axis"] == {"name": "strain", "unit": "%"}
    assert line["missing_elements"] == pytest.approx(20 / (45 * 8))
    assert counts["decoder_variance"] == {"training": None, "reported": None}


def test_the_table_has_physics_gaps_and_likelihood(saved: tuple[FitResult, Path]) -> None:
    table = " ".join(saved[0].table().split())
    assert "line 8 (in 45; 6 % of elements missing), counts 3 (poisson)" in table
    assert "Physics line: estimate ± standard error" in table


def test_figures_of_curves_and_gaps_are_in_folder_and_report(saved: tuple[FitResult, Path]) -> None:
    figures = {path.stem for path in (saved[1] / "figures").iterdir()}
    assert {"missing", "curves_line"} <= figures
    assert "curves_counts" not in figures
    report = (saved[1] / "report.html").read_text()
    assert report.count("data:image/png;base64,") == len(figures)
    assert report.index("What is missing where.") < report.index("Curves by cluster: line.")


def test_the_file_has_names_positions_and_gaps(saved: tuple[FitResult, Path]) -> None:
    tree: Any = read_posterior(saved[1] / "posterior.nc")
    assert list(tree["constant_data"]["sample_name"].values[:2]) == ["S0", "S1"]
    np.testing.assert_array_equal(tree["observed_data"]["position_line"], _STRAIN)
    share = tree["constant_data"]["measured_share_line"].values
    np.testing.assert_allclose(share, [0.0] * 3 + [1.0] * 7 + [0.75] * 10 + [1.0] * (_N - 20))
    index = tree["observed_data"]["sample_id_line"].values
    np.testing.assert_array_equal(np.isnan(tree["observed_data"]["line"]).any(axis=1), share[index] < 1)
    assert np.isfinite(tree["log_likelihood"]["line"]).all()


def test_files_of_curves_are_replaced_with_the_run(saved: tuple[FitResult, Path]) -> None:
    result, folder = saved
    (folder / "figures" / "curves_of_an_earlier_run.png").write_bytes(b"")
    result.save(folder, force=True)
    assert not (folder / "figures" / "curves_of_an_earlier_run.png").exists()
