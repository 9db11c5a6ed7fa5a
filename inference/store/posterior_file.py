"""Reading posterior.nc."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import xarray as xr

from causalpima.inference.store.files import FORMAT_KEY, FormatError, check_format
from causalpima.inference.store.hdf5 import check_hdf5
from causalpima.inference.store.input_files import check_memory, reason_of

__all__ = [
    "read_posterior",
]


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
