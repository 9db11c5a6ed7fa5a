"""A posterior.nc that is too large to be made in memory: written straight to the disk, once there is room for it."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from fit_arrays_example import example_fit

from causalpima.inference.reporting import arviz as arviz_export
from causalpima.inference.reporting.arviz import write_posterior
from causalpima.inference.store.files import OutputError
from causalpima.inference.store.posterior_file import read_posterior

needs_fallocate = pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="no posix_fallocate on this system")


def test_it_is_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_posterior(example_fit(), tmp_path / "small.nc")
    monkeypatch.setattr(arviz_export, "_MOST_IN_MEMORY", 0)
    monkeypatch.setattr(arviz_export, "write_bytes", None)
    write_posterior(example_fit(), tmp_path / "large.nc")
    assert read_posterior(tmp_path / "large.nc").identical(read_posterior(tmp_path / "small.nc"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["large.nc", "small.nc"]


def test_the_room_that_is_asked_for_suffices(tmp_path: Path) -> None:
    tree: Any = arviz_export.to_datatree(example_fit())
    write_posterior(example_fit(), tmp_path / "small.nc")
    assert arviz_export._size(tree) >= (tmp_path / "small.nc").stat().st_size


@needs_fallocate
def test_a_full_disk_is_met_before_hdf5_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(arviz_export, "_MOST_IN_MEMORY", 0)
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OutputError, match=r"posterior.nc: the disk is full"):
        write_posterior(example_fit(), tmp_path / "posterior.nc")
    assert not list(tmp_path.iterdir())
