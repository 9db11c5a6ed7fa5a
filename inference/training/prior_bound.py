"""The bound of a prior without cells, before clusters are read out."""

from __future__ import annotations

import torch

from inference.data.tensors import TensorData
from inference.objectives.enumerated import make_elbo
from inference.training.divergence import check_finite
from inference.training.epochs import Tally, evaluate
from inference.training.state import TrainingState

__all__ = ["prior_bound"]

_PASSES = 16


@torch.no_grad()
def prior_bound(state: TrainingState, data: TensorData) -> float:
    r"""E_q log p(X|Z) - KL(q(Z|X) ‖ p(Z)) per sample, in nats, with β = 1 and the decoders as they are.

    An evidence lower bound of $\int p(Z) \prod_m p(X_m|Z) dZ$ where no likelihood has a weight. The KL is in closed
    form; the likelihoods are averaged over 16 draws of Z. What else is seen of Z (labels) is left out.

    Args:
        state: While the prior is in force.
        data: The samples.

    Raises:
        DivergedError: It is not finite.
    """
    analytic = make_elbo("meanfield")
    tallies = [evaluate(state, analytic, data) for _ in range(_PASSES)]
    value = sum(_of_modalities(state, tally) for tally in tallies) / _PASSES
    check_finite("bound of the prior", value)
    return value


def _of_modalities(state: TrainingState, tally: Tally) -> float:
    means = tally.means()
    reconstruction = (means[f"reconstruction/{name}"] for name in state.decoders)
    return sum(reconstruction, means["latent"] + means["latent_entropy"])
