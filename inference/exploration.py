"""Embeddings of several starts of the pretraining, without clusters."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import torch

from inference.clusters.stability import Embedding
from inference.data.multimodal import MultimodalData
from inference.run import Run
from inference.training.clustering import embed
from inference.training.config import FitConfig
from inference.training.state import DivergedError

__all__ = [
    "pretrained_embeddings",
]


def pretrained_embeddings(
    data: MultimodalData,
    config: FitConfig,
    n_starts: int,
    *,
    device: str = "cpu",
    done: Callable[[], object] = lambda: None,
) -> list[Embedding]:
    """Pretrain encoders and decoders from several starts, and embed the training and the held-out samples.

    Args:
        data: The samples.
        config: The configuration; only what concerns the split and the pretraining matters.
        n_starts: Number of starts.
        device: Where to compute.
        done: Called after every start.

    Raises:
        ValueError: The configuration pretrains nothing, or the data cannot be fitted with it.
        DivergedError: Pretraining did.
    """
    if config.pretraining_epochs == 0:
        raise ValueError("pretraining.epochs: expected at least 1, got 0; clusters are read out of what is pretrained")
    found = []
    for start in range(n_starts):
        found.append(_embedding(Run(data, dataclasses.replace(config, restart=start), device)))
        done()
    return found


def _embedding(run: Run) -> Embedding:
    run.train(run.config.pretraining_epochs)
    if run.state.diverged is not None:
        raise DivergedError(run.state.diverged)
    run.state.modules.eval()
    loc = embed(run.state, run.tensors).loc.to("cpu", torch.float64).numpy()
    return Embedding(loc[run.split == "train"], loc[np.isin(run.split, ("validation", "test"))])
