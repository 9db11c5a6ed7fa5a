"""A run that was never stopped, and one that was, and goes on from its checkpoint in another `Run`."""

from __future__ import annotations

from pathlib import Path

import torch

from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.run import Run
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.config import FitConfig

__all__ = ["whole_and_resumed"]


def whole_and_resumed(data: MultimodalData, config: FitConfig, stop: int, path: Path) -> tuple[Run, Run]:
    """Both, trained to their end; that they have the same weights, those of the best epoch too, is asserted.

    Args:
        data: The samples.
        config: The configuration.
        stop: Epochs after which the second one is stopped.
        path: Folder for its checkpoints.
    """
    whole, stopped, resumed = (Run(data, config) for _ in range(3))
    whole.train()
    folder = RunFolder(path)
    folder.create(config.to_dict())
    stopped.train(until=stop, folder=folder)
    resumed.restore(folder)
    resumed.train(folder=folder)
    expected, found = whole.state.weights(), resumed.state.weights()
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value), name
    return whole, resumed
