"""Files that are refused for what they are before they are read: pipes, and values that no memory holds."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import h5netcdf
import numpy as np
import pytest

from causalpima.inference.data.formats import read_file
from causalpima.inference.data.reading import as_multimodal
from causalpima.inference.data.roles import ReadOptions
from causalpima.inference.reporting.page_tables import picture_of

HUGE = 2**42


@pytest.mark.parametrize("suffix", [".nc", ".npz"])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, suffix: str) -> None:
    os.mkfifo(tmp_path / f"pipe{suffix}")
    with pytest.raises(ValueError, match=rf"^data: expected a readable \{suffix} file.*it is a pipe, no regular file"):
        read_file(tmp_path / f"pipe{suffix}")


def test_sizes_that_no_memory_holds_are_named_before_they_are_read(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2, HUGE)})
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue())
    with pytest.raises(ValueError, match=r"bomb.npz.*its values take 6.55e\+04 GiB, more than the .* GiB of memory"):
        read_file(tmp_path / "bomb.npz")
    with h5netcdf.File(tmp_path / "bomb.nc", "w") as file:
        file.dimensions = {"sample": 4, "element": HUGE}
        file.create_variable("x", ("sample", "element"), dtype="f4", chunks=(1, 2**20))
    with pytest.raises(ValueError, match=r"bomb.nc.*its values take .* GiB, more than the .* GiB of memory"):
        as_multimodal(tmp_path / "bomb.nc", ReadOptions(in_memory="yes"))
    with pytest.raises(ValueError, match=r"bomb.nc: x: expected samples that the memory can hold, .* take .* GiB"):
        as_multimodal(tmp_path / "bomb.nc", ReadOptions(in_memory="no"))
    with h5netcdf.File(tmp_path / "bomb.nc", "a") as file:
        file.create_variable("element", ("element",), dtype="f4", chunks=(2**20,))
    with pytest.raises(ValueError, match=r"data: expected a readable .nc file.*bomb.nc.*its values take .* GiB, more"):
        as_multimodal(tmp_path / "bomb.nc", ReadOptions(in_memory="no"))


def test_a_file_that_no_memory_holds_after_all_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("causalpima.inference.data.reading.read_file", fail)
    with pytest.raises(MemoryError, match=r"a.nc: it is too large$"):
        as_multimodal(tmp_path / "a.nc")


def test_a_page_embeds_pictures_of_its_own_folder_only(tmp_path: Path) -> None:
    figures = tmp_path / "run" / "figures"
    figures.mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    (figures / "graph.png").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(ValueError, match=r"graph\.png: expected a picture, got none .*it is a link to a file"):
        picture_of(figures / "graph.png", "", "", "")
    (figures / "objective.png").write_text("no picture")
    with pytest.raises(ValueError, match=r"objective\.png: expected a picture in PNG, got something else; remove it"):
        picture_of(figures / "objective.png", "", "", "")
    (figures / "latent.png").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match="it is a device, no regular file"):
        picture_of(figures / "latent.png", "", "", "")
