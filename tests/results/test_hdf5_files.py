"""A full disk under HDF5 is an error of one line, not the end of the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import h5netcdf
import h5py
import numpy as np
import pytest

from causalpima.inference.data.formats import read_file
from causalpima.inference.store.hdf5 import FailureTakingFile, survives_full_disk
from causalpima.inference.store.posterior_file import read_posterior

PROGRAM = """
import resource, signal, sys
import h5netcdf, numpy as np
from pathlib import Path
from causalpima.inference.store.hdf5 import survives_full_disk

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    with survives_full_disk(Path(sys.argv[1])) as raw, h5netcdf.File(raw, "w") as file:
        file.dimensions = {"sample": 400, "element": 100}
        for name in "abc":
            file.create_variable(name, ("sample", "element"), dtype="float32", chunks=(100, 100))
        for name in "abc":
            file[name][...] = np.random.rand(400, 100)
            if sys.argv[3] == "checked":
                raw.check()
except OSError as error:
    print("OSError", error.errno)
"""


@pytest.mark.parametrize("limit", [100, 3_000, 60_000, 200_000, 480_000])
@pytest.mark.parametrize("checked", ["checked", "at the end"])
def test_a_full_disk_is_an_os_error(tmp_path: Path, limit: int, checked: str) -> None:
    program = [sys.executable, "-c", PROGRAM, str(tmp_path / "x.nc"), str(limit), checked]
    done = subprocess.run(program, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["OSError", "27"], "")


def test_what_was_written_is_read(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(50, 7))
    with survives_full_disk(tmp_path / "x.nc") as raw, h5netcdf.File(raw, "w") as file:
        file.dimensions = {"sample": 50, "element": 7}
        file.create_variable("a", ("sample", "element"), data=values)
    with h5netcdf.File(tmp_path / "x.nc", "r") as file:
        np.testing.assert_array_equal(file["a"][...], values)


def test_after_a_failure_it_goes_on_in_memory(tmp_path: Path) -> None:
    with FailureTakingFile(tmp_path / "x") as file:
        file.write(b"abcdef")
        file.failure = OSError(28, "full")
        file.seek(4)
        assert file.write(b"XYZ") == 3
        assert file.tell() == 7
        file.seek(0)
        assert file.read(9) == b"abcdXYZ\0\0"
        with pytest.raises(OSError, match="full"):
            file.check()
    assert (tmp_path / "x").read_bytes() == b"abcdef"


def outside(kind: str, file: h5py.File, place: Path) -> None:
    """Let a variable of a file be one of another file."""
    if kind == "link":
        file["x"] = h5py.ExternalLink(str(place), "/secret")
    elif kind == "storage":
        file.create_dataset("x", shape=(4, 2), dtype="u1", external=[(str(place), 0, h5py.h5f.UNLIMITED)])
    else:
        layout = h5py.VirtualLayout(shape=(4, 2), dtype="f4")
        layout[:] = h5py.VirtualSource(str(place), "secret", shape=(4, 2))
        file.create_virtual_dataset("x", layout)


@pytest.mark.parametrize("kind", ["link", "storage", "virtual"])
def test_values_from_other_files_are_refused(kind: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.nc", "w") as other:
        other["secret"] = np.ones((4, 2), "f4")
    with h5py.File(tmp_path / "data.nc", "w") as data:
        outside(kind, data, tmp_path / "other.nc")
    for read in (read_file, read_posterior):
        with pytest.raises(ValueError, match=r"part x .*another file"):
            read(tmp_path / "data.nc")
