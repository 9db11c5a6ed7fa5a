"""A file of samples, written a block of samples at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import h5netcdf
import h5py
import numpy as np

from inference.data.preparation.modality import Modality
from inference.results.hdf5_files import FailureTakingFile

__all__ = ["SAMPLE", "Known", "SampleFile"]

SAMPLE = "sample"
"""Name of the dimension of the samples, and of the variable with their names."""

_BLOCK_BYTES = 2**24
_MOST_ROWS = 1024
_CHUNK_BYTES = 2**18


@dataclass(frozen=True)
class Known:
    """What is known of every sample: a label, covariate or group, as whole numbers or text.

    Attributes:
        name: Name of the variable.
        values: One per row of the manifest, int64 or text.
        attributes: Of the variable.
    """

    name: str
    values: np.ndarray
    attributes: Mapping[str, str]


class SampleFile:
    """A netCDF file that grows by samples; use it in a `with` block.

    At most 16 MiB of measurements are held. The dimension of the samples is unlimited, and a chunk on disk is as many
    samples as fit into 256 KiB, so that batches can be read in any order.

    Args:
        path: New file.
        modalities: Its variables.
        attributes: Of the file.
    """

    def __init__(self, path: Path, modalities: Sequence[Modality], attributes: Mapping[str, str | int]) -> None:
        self.n_samples = 0
        self._modalities = modalities
        row_bytes = sum(_row_bytes(modality) for modality in modalities)
        self._block_rows = max(1, min(_MOST_ROWS, _BLOCK_BYTES // row_bytes))
        self._block: list[Mapping[str, np.ndarray]] = []
        self._raw = FailureTakingFile(path)
        self._file = h5netcdf.File(self._raw, "w")
        self._file.attrs.update(attributes)
        self._file.dimensions = {SAMPLE: None}
        for modality in modalities:
            self._create(modality)

    def __enter__(self) -> SampleFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._raw.close()
        if error is None:
            self._raw.check()

    def append(self, measured: Mapping[str, np.ndarray]) -> None:
        """Add a sample; what it lacks becomes NaN."""
        self._block.append(measured)
        self.n_samples += 1
        if len(self._block) == self._block_rows:
            self.flush()

    def flush(self) -> None:
        """Write the samples that are held."""
        begin = self.n_samples - len(self._block)
        self._file.resize_dimension(SAMPLE, self.n_samples)
        for modality in self._modalities:
            absent = np.full(modality.shape, np.nan, dtype=modality.dtype)
            rows = [measured.get(modality.name, absent) for measured in self._block]
            if rows:
                self._file[modality.name][begin : self.n_samples] = np.stack(rows)
        self._block = []
        self._raw.check()

    def finish(self, names: Sequence[str], known: Sequence[Known], rows: Sequence[int]) -> None:
        """Write what is held, the names of the samples, and what is known of them.

        Args:
            names: Name of every row of the manifest.
            known: What is known of every row.
            rows: Rows of the samples, in the order in which they were added.
        """
        self.flush()
        named = Known(SAMPLE, np.array(names, dtype=object), {"long_name": "name of the sample"})
        for variable in (named, *known):
            dtype = variable.values.dtype if variable.values.dtype.kind == "i" else h5py.string_dtype()
            created = self._file.create_variable(variable.name, (SAMPLE,), dtype=dtype, chunks=(_MOST_ROWS,))
            created[:] = variable.values[list(rows)]
            created.attrs.update(variable.attributes)

    def _create(self, modality: Modality) -> None:
        for name, size in zip(modality.dims, modality.shape, strict=True):
            self._file.dimensions[name] = size
        for name, coordinate in modality.coordinates.items():
            variable = self._file.create_variable(name, (name,), data=np.asarray(coordinate.values, dtype=float))
            variable.attrs.update(_attributes(long_name=coordinate.title, units=coordinate.units))
        rows = max(1, min(_MOST_ROWS, _CHUNK_BYTES // _row_bytes(modality)))
        variable = self._file.create_variable(
            modality.name,
            (SAMPLE, *modality.dims),
            dtype=modality.dtype,
            fillvalue=np.dtype(modality.dtype).type(np.nan),
            chunks=(rows, *modality.shape),
        )
        variable.attrs.update(
            _attributes(
                kind=modality.kind, long_name=modality.column.title, units=modality.units, comment=modality.rule
            )
        )


def _row_bytes(modality: Modality) -> int:
    return int(np.prod(modality.shape)) * np.dtype(modality.dtype).itemsize


def _attributes(**attributes: str) -> dict[str, str]:
    """Those that say something: netCDF tools read empty units as a unit."""
    return {name: text for name, text in attributes.items() if text}
