"""What the decoders make of one place in the latent space."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from inference.results.collect import central_value
from inference.training.fitted_run import FittedRun

__all__ = ["decoded_at"]


@torch.no_grad()
def decoded_at(fitted: FittedRun, latent: Tensor, cell: int) -> dict[str, np.ndarray]:
    """Decoded centre of every modality in the units of the data, `[*event]`; of categories the most probable code.

    Args:
        fitted: The run.
        latent: Z, `[J]`.
        cell: The cell.
    """
    index = torch.tensor([cell], device=latent.device)

    def centre(name: str) -> np.ndarray:
        decoded = central_value(fitted.model.decode(name, latent.unsqueeze(0), index))
        array: np.ndarray = fitted.modalities[name].standardisation.invert(decoded)[0].cpu().numpy()
        return array

    return {name: centre(name) for name in fitted.modalities}
