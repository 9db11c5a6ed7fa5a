"""Everything that touches ArviZ itself, of which two lines are in use: 0.x (Python 3.11) and 1.x."""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from causalpima.inference.store.posterior_file import read_posterior

__all__ = [
    "Loo",
    "arviz_major",
    "as_container",
    "convergence",
    "energy_fraction",
    "import_arviz",
    "loo",
    "open_in_arviz",
]


def arviz_major() -> int:
    """0 or 1: which line of ArviZ is installed."""
    return int(version("arviz").split(".")[0])


def import_arviz() -> ModuleType:
    """ArviZ, imported when it is first needed (it takes seconds), whatever the machine has seen before.

    Once a day 0.x warns that 1.x is coming, and notes the day in the user's cache: a folder that may not be writable.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\s*ArviZ is undergoing a major refactor", FutureWarning)
        try:
            return importlib.import_module("arviz")
        except OSError:
            with tempfile.TemporaryDirectory() as folder, _environment(XDG_CACHE_HOME=folder):
                return importlib.import_module("arviz")


@contextlib.contextmanager
def _environment(**changes: str) -> Iterator[None]:
    """Environment variables for a while."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def as_container(tree: xr.DataTree) -> Any:
    """What the installed ArviZ works on: `arviz.InferenceData` in 0.x, the tree itself in 1.x."""
    return tree if arviz_major() else import_arviz().InferenceData.from_datatree(tree)


def open_in_arviz(path: Path | str) -> Any:
    """Read a `posterior.nc` into memory as what the installed ArviZ works on; the file is closed again.

    Raises:
        ValueError: The file is missing, or is no netCDF 4 file.
    """
    return as_container(read_posterior(path))


def _not_fitted_is_infinite(khat: np.ndarray) -> np.ndarray:
    """ArviZ 1.x has NaN where the tail is so heavy that its fit fails: that must not look healthy in a comparison."""
    return np.where(np.isnan(khat), np.inf, khat)


class Loo(NamedTuple):
    """Leave-one-out cross-validation by Pareto-smoothed importance sampling (Vehtari, Gelman and Gabry 2017).

    Attributes:
        elpd: Expected log pointwise predictive density, summed over samples, in nats.
        standard_error: Of it.
        p: Effective number of parameters.
        pareto_k: Shape of the tail of the weights per sample, `[S]`; above 0.7 the estimate is not to be trusted.
    """

    elpd: float
    standard_error: float
    p: float
    pareto_k: np.ndarray


def loo(log_likelihood: np.ndarray) -> Loo:
    """ArviZ's `loo` of one variable, whose draws are independent.

    Args:
        log_likelihood: `[chain, draw, sample]`, finite.

    Raises:
        ValueError: It has another shape, or values that are not finite.
    """
    if log_likelihood.ndim != 3 or not np.isfinite(log_likelihood).all():
        raise ValueError(
            f"log_likelihood: expected finite [chain, draw, sample], got shape {log_likelihood.shape}; leave absent "
            "samples out"
        )
    values = xr.Dataset({"x": (("chain", "draw", "sample_id"), log_likelihood.astype(np.float64))})
    tree = xr.DataTree.from_dict({"posterior": values.rename(x="z"), "log_likelihood": values})
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = import_arviz().loo(as_container(tree), var_name="x", pointwise=True, reff=1.0)
    names = ("elpd_loo", "se", "p_loo") if arviz_major() == 0 else ("elpd", "se", "p")
    elpd, error, p = (float(getattr(found, name)) for name in names)
    return Loo(elpd, error, p, _not_fitted_is_infinite(np.asarray(found.pareto_k)))


def convergence(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rank-normalised R-hat, and effective sample sizes in the bulk and in the tails (Vehtari et al. 2021).

    Args:
        values: `[chain, draw, *event]`.

    Returns:
        Three arrays `[*event]`; NaN where a quantity does not vary (or R-hat, of one chain).
    """
    az = import_arviz()
    dims = ("chain", "draw", *(f"axis{axis}" for axis in range(values.ndim - 2)))
    data = xr.Dataset({"value": (dims, np.asarray(values, dtype=np.float64))})
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        r_hat = (
            az.rhat(data, method="rank")["value"] if len(values) > 1 else data["value"].mean(("chain", "draw")) * np.nan
        )
        bulk, tail = (az.ess(data, method=method)["value"] for method in ("bulk", "tail"))
    constant = np.ptp(values.reshape(-1, *values.shape[2:]), axis=0) == 0
    return tuple(np.where(constant, np.nan, np.asarray(part)) for part in (r_hat, bulk, tail))  # type: ignore[return-value]


def energy_fraction(energy: np.ndarray) -> np.ndarray:
    r"""Estimated Bayesian fraction of missing information, `[chain]` from `[chain, draw]` (Betancourt 2016).

    $\sum_t (E_t - E_{t-1})^2 / \sum_t (E_t - \bar E)^2$; below 0.3 the chain explores the tails too slowly. Written
    here, since the two lines of ArviZ take and give it in different forms.
    """
    steps, spread = np.diff(energy, axis=1), energy - energy.mean(1, keepdims=True)
    fraction: np.ndarray = (steps**2).sum(1) / (spread**2).sum(1)
    return fraction
