"""Laws whose parameters come from Z are reported as the least-squares law of each cell, with honest intervals."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tiny_fits import settings, tiny_samples

from causalpima.inference.run import Run
from causalpima.inference.training.config import DecoderConfig


@pytest.mark.parametrize("source", ["latent", "both"])
def test_estimates_are_least_squares_of_the_samples_of_each_cell(source: str) -> None:
    config = settings()
    law = DecoderConfig("linear", (8,), source=source)  # type: ignore[arg-type]
    curve = dataclasses.replace(config.modality["curve"], decoder=law)
    config = dataclasses.replace(config, modality={**config.modality, "curve": curve})
    run = Run(tiny_samples(), config)
    run.train()
    arrays = run.finish().arrays
    assert arrays is not None
    physics = arrays.modalities["curve"].physics
    assert physics is not None
    training = run.split == "train"
    share, values = arrays.responsibilities[training], run.data.modalities["curve"][training]
    position = np.arange(8.0)
    for cell in range(4):
        if (share[:, cell] > 0.5).sum() < 3:
            continue
        mean = (share[:, cell] @ values) / share[:, cell].sum()
        slope, intercept = np.polyfit(position, mean, 1)
        found = dict(zip(physics.names, physics.value[cell], strict=True))
        assert found["slope"] == pytest.approx(slope, rel=1e-3, abs=1e-4)
        assert found["intercept"] == pytest.approx(intercept, rel=1e-2, abs=1e-2)
        assert physics.lower[cell, 0] < slope < physics.upper[cell, 0]
