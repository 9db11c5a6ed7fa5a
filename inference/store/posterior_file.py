"""Reading posterior.nc."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from inference.store.files import FORMAT_KEY, check_format
from inference.store.input_files import UnusableFileError, check_regular

__all__ = [
    "read_posterior",
]


def read_posterior(path: Path | str) -> xr.DataTree:
    """Read what `write_posterior` wrote, into memory; the file is closed again.

    Raises:
        ValueError: The file is missing, is no netCDF 4 file, or was written by a newer program.
    """
    try:
        check_regular(path)
        with xr.open_datatree(path, engine="h5netcdf") as tree:
            check_format(path, tree.attrs.get(FORMAT_KEY))
            return tree.load()
    except FileNotFoundError as error:
        raise ValueError(f"path: expected a posterior.nc, got {path}, which does not exist; name another") from error
    except OSError as error:
        reason = f" ({error})" if isinstance(error, UnusableFileError) else ""  # HDF5 speaks of its insides
        raise ValueError(
            f"path: expected a netCDF 4 file, got {path}, which cannot be read{reason}; write it again"
        ) from error
