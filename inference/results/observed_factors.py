"""Measured factors of a run as further nodes: their levels are known where the samples have a label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from inference.graphs.mixture_posterior import NodeSamples
from inference.graphs.observed_nodes import with_observed
from inference.results.node_samples import observational_rows_of_file

__all__ = ["with_factors"]


def with_factors(samples: NodeSamples, posterior: xr.DataTree, factors: Sequence[str]) -> NodeSamples:
    """The nodes of a run with some of its known factors beside them (`with_observed`).

    Args:
        samples: What its file tells of the nodes (`node_samples_of_file`).
        posterior: The file, `posterior.nc`, as `read_posterior` reads it.
        factors: Names of factors that came with the data.

    Raises:
        ValueError: A factor that is not there, has one level, or is called like a node.
    """
    if not factors:
        return samples
    constant = posterior["constant_data"].dataset
    rows = observational_rows_of_file(posterior)
    codes = np.stack([_codes(constant, name, samples.nodes)[rows] for name in factors], axis=1)
    sizes = [constant.sizes[f"level_{name}"] for name in factors]
    likelihood = with_observed(samples.log_likelihood, codes, sizes)
    nodes, outcomes = (*samples.nodes, *factors), (*samples.outcomes, *sizes)
    return NodeSamples(nodes, outcomes, likelihood, samples.weights)


def _codes(constant: xr.Dataset, name: str, nodes: Sequence[str]) -> np.ndarray:
    known = [str(key).removeprefix("factor_") for key in constant.data_vars if str(key).startswith("factor_")]
    if name not in known:
        raise ValueError(
            f"factors: expected known factors of the run ({', '.join(known) or 'none'}), got {name}; fit with "
            f"--labels {name} if the data have it"
        )
    if name in nodes:
        raise ValueError(f"factors: expected factors besides the nodes, got {name}, which is one; leave it out")
    if constant.sizes[f"level_{name}"] < 2:
        raise ValueError(f"factors: expected two levels at least, got one of {name}; leave it out")
    codes: np.ndarray = constant[f"factor_{name}"].to_numpy()
    return codes
