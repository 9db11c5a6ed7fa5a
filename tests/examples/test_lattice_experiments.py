"""The named experiments of the lattices: networks, split and law of the paper."""

from __future__ import annotations

import numpy as np
import pytest

from causalpima.examples.lattices import EXPERIMENTS
from causalpima.inference.run import Run
from causalpima.models.decoders.physics.decoder import PhysicsDecoder


@pytest.fixture(scope="module")
def run() -> Run:
    experiment = EXPERIMENTS["lattices_paper"]
    return Run(experiment.make(seed=100), experiment.config)


def test_the_networks_are_those_of_the_paper(run: Run) -> None:
    shapes = {name: tuple(weight.shape) for name, weight in run.weights().items() if name.endswith("weight")}
    encoder = [shape for name, shape in shapes.items() if "encoders.image" in name and len(shape) > 2]
    curve = [shape for name, shape in shapes.items() if "encoders.curve" in name and len(shape) > 2]
    decoder = [shape for name, shape in shapes.items() if "decoders.image" in name and len(shape) > 2]
    assert encoder == [(32, 1, 3, 3), (64, 32, 3, 3)]
    assert curve == [(8, 1, 3), (16, 8, 3)]
    assert decoder == [(32, 64, 3, 3), (64, 32, 3, 3), (32, 1, 3, 3)]  # transposed: in, out
    law = run.state.model.decoders["curve"]
    assert isinstance(law, PhysicsDecoder)
    assert not law.depends_on_latent
    assert run.state.model.graph.n_cells == 4
    assert run.config.model.latent_dim == 2


def test_the_split_is_81_9_10(run: Run) -> None:
    parts, counts = np.unique(run.split, return_counts=True)
    assert dict(zip(parts.tolist(), counts.tolist(), strict=True)) == {"train": 74, "validation": 8, "test": 9}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_can_be_prepared(name: str) -> None:
    experiment = EXPERIMENTS[name]
    data = experiment.make(n_samples=40, seed=101, **experiment.options)
    assert set(Run(data, experiment.config).modalities) == {"image", "curve"}
