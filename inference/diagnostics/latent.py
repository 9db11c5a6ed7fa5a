r"""How much every dimension of Z tells of a sample.

$$\frac{1}{n} \sum_n \mathrm{KL}\big(N(\mu_{nj}, \sigma_{nj}^2)\,\|\,N(m_j, v_j)\big)
= \tfrac12 \log v_j - \tfrac1n \sum_n \log \sigma_{nj}, \qquad
v_j = \mathrm{var}_n \mu_{nj} + \overline{\sigma_{nj}^2}$$

with the Gaussian whose moments are those of all samples together: the mean of $(\sigma^2 + (\mu - m)^2) / v$ is 1 and
cancels with the last term of the divergence.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from inference.diagnostics.finding import Finding
from inference.results.verdicts import Line

__all__ = ["dimension_information", "latent_dimensions"]

_UNUSED = 0.05


def dimension_information(loc: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Mean divergence of every dimension from all samples together, in nats, `[J]`; 0 where a dimension tells nothing.

    Args:
        loc: Means of q(Z|X), `[n, J]`.
        scale: Standard deviations, `[n, J]`.
    """
    loc, scale = loc.astype(np.float64), scale.astype(np.float64)
    information: np.ndarray = np.log(loc.var(0) + np.square(scale).mean(0)) / 2 - np.log(scale).mean(0)
    return information


def latent_dimensions(posterior: xr.DataTree, block_dim: int | None = None) -> Finding:
    """Dimensions that are used; none is what posterior collapse looks like.

    Args:
        posterior: As `read_posterior` reads it.
        block_dim: Dimension of the blocks that Z consists of, of nodes or modalities; None: it is one block.
    """
    variational = posterior["variational"].dataset
    found = dimension_information(variational["latent_loc"].to_numpy(), variational["latent_scale"].to_numpy())
    unused = int((found < _UNUSED).sum())
    told = ", ".join(f"{value:.2f}" for value in found[:6]) + (", ..." if len(found) > 6 else "")
    text = f"{len(found) - unused} of {len(found)} used ({told} nats)"
    is_used = (found >= _UNUSED).reshape(-1, block_dim or len(found))
    return Finding((_line(text, is_used),), {"latent_information": found.tolist()})


def _line(text: str, is_used: np.ndarray) -> Line:
    """The verdict on dimensions by block, bool `[blocks, block_dim]`."""
    key, name, most, size = "latent", "latent dimensions", int(is_used.sum(1).max()), is_used.shape[1]
    if not most:
        advice = "the encoders tell nothing of the samples: longer --pretraining.epochs, lower decoder.variance_floor"
        return Line(key, name, text, "fails", advice)
    if most < size:
        return Line(key, name, text, "unclear", f"--model.latent_dim {most} would do")
    if not is_used.all():
        advice = f"some blocks of Z tell less than others, which need all {size}: leave --model.latent_dim as it is"
        return Line(key, name, text, "unclear", advice)
    return Line(key, name, text, "passes")
