"""The fit as one netCDF file in the ArviZ schema; knows no torch."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from inference.results.arrays import FitArrays
from inference.results.arviz_groups import EDGE_CONVENTION, GROUPS
from inference.results.files import write_atomically, write_bytes
from inference.results.hdf5_files import check_hdf5, survives_full_disk
from inference.results.input_files import check_memory, reason_of
from inference.results.strict_json import to_json
from inference.results.versions import FORMAT_KEY, FormatError, check_format, file_attributes, library_versions

__all__ = ["EDGE_CONVENTION", "read_posterior", "run_facts", "to_datatree", "write_posterior"]

_MOST_IN_MEMORY = 2**26
_TEXT_BYTES = 256


def to_datatree(fit: FitArrays) -> xr.DataTree:
    """The groups of the ArviZ schema, and beside them `variational` for what is not sampled, and `history`.

    - `posterior`, `prior`: draws of `Z` [chain, draw, sample_id, latent] and `N` [chain, draw, sample_id, node],
      integer; those of the prior have no sample.
    - `posterior_predictive`, `observed_data`: one variable per modality, of the samples that have it.
    - `predictions`: draws of a modality for samples that lack it.
    - `log_likelihood`: log p(x_m | z, N) in nats, one variable per modality, of the samples that have it.
    - `sample_stats`: `log_weight`, log p(x, z) - log q(z|x) in nats.
    - `constant_data`: presence, known factors (codes; their names are coordinates), measurements, split, per `sample`.
    - `variational`: responsibilities and q(Z|X) per `sample`, the graph, the mixture; per cell decoded means, nearest
      samples, examples of measured curves, and the parameters of physical laws.
    - `history`: one record per epoch.

    Draws are for a part of the samples: the coordinates along `sample_id` are their indices along `sample`. Where some
    samples lack a modality, its dimension is `sample_id_MODALITY`, so that nothing in these groups is NaN but elements
    of `observed_data` that are missing from a measurement; `log_likelihood` is that of the measured ones. Groups
    without a variable are left out.
    """
    groups = {name: group(fit) for name, group in GROUPS.items()}
    tree = xr.DataTree.from_dict({name: dataset for name, dataset in groups.items() if dataset.data_vars})
    tree.attrs = _attributes(fit)
    return tree


def write_posterior(fit: FitArrays, path: Path | str) -> None:
    """Write `to_datatree(fit)` as netCDF 4, whole or not at all.

    Raises:
        OutputError: The disk is full, the folder is missing or not writable.
    """
    tree = to_datatree(fit)
    size = _size(tree)
    if size > _MOST_IN_MEMORY:
        write_atomically(path, lambda temporary: _write_to_disk(tree, temporary, size))
        return
    # By way of memory: when HDF5 itself meets a full disk, it takes the whole process down with it. And as bytes: a
    # view of a BytesIO that is left to the garbage collector, in a traceback, does the same (Python 3.12.1).
    write_bytes(path, bytes(tree.to_netcdf(engine="h5netcdf")))


def _write_to_disk(tree: xr.DataTree, path: Path, size: int) -> None:
    """Straight to the disk, once it is known that there is room: a file of that size can be made."""
    if hasattr(os, "posix_fallocate"):  # not on every system
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)
    with survives_full_disk(path) as raw:
        tree.to_netcdf(raw, engine="h5netcdf")


def _size(tree: xr.DataTree) -> int:
    """Bytes of the file at most, generously."""
    variables = [v for node in tree.subtree for v in node.to_dataset(inherit=False).variables.values()]
    return 2**20 + sum(v.size * max(v.dtype.itemsize, _TEXT_BYTES * (v.dtype.kind == "O")) for v in variables)


def read_posterior(
    path: Path | str, within: Path | str | None = None, groups: Sequence[str] | None = None
) -> xr.DataTree:
    """Read what `write_posterior` wrote, into memory; the file is closed again.

    Args:
        path: The file.
        within: A folder in which it has to lie, or None.
        groups: The groups that are wanted; None: all.

    Raises:
        ValueError: The file is missing, is no netCDF 4 file, or was written by a newer program.
    """
    try:
        sizes = check_hdf5(path, within)
        check_memory(sum(sizes.get(name, 0) for name in (groups or sizes)))
        with xr.open_dataset(path, engine="h5netcdf", phony_dims="access") as root:
            check_format(path, root.attrs.get(FORMAT_KEY))
            attributes = dict(root.attrs)
        if groups is None:
            with xr.open_datatree(path, engine="h5netcdf", phony_dims="access") as tree:
                return tree.load()
        chosen = xr.DataTree.from_dict({name: _load_group(path, name) for name in groups})
        chosen.attrs = attributes
        return chosen
    except FileNotFoundError as error:
        raise ValueError(f"path: expected a posterior.nc, got {path}, which does not exist; name another") from error
    except (FormatError, MemoryError):
        raise
    except Exception as error:  # whatever a damaged file makes its reader raise
        raise ValueError(
            f"path: expected a netCDF 4 file, got {path}, which cannot be read ({reason_of(error)}); write it again"
        ) from error


def _load_group(path: Path | str, name: str) -> xr.Dataset:
    with xr.open_dataset(path, engine="h5netcdf", group=name, phony_dims="access") as group:
        return group.load()


def run_facts(fit: FitArrays) -> dict[str, Any]:
    """Configuration, versions and what else is known of the fit, as plain values."""
    facts = {"bayes_ceiling": fit.bayes_ceiling, "versions": library_versions(), **fit.attributes}
    return dict(json.loads(to_json(facts)))


def _attributes(fit: FitArrays) -> dict[str, str | int]:
    return {
        "dataset": fit.dataset,
        "seed": int(fit.seed),
        "objective": fit.objective,
        "status": fit.status,
        **file_attributes(),
        "edge_convention": EDGE_CONVENTION,
        "versions": to_json(library_versions(), indent=None),
        "facts": to_json(run_facts(fit), indent=None),
    }
