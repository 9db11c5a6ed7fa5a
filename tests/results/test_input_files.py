"""Files that are read: regular, of a bounded size, in the folder, and of a format that is known."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import xarray as xr

from causalpima.inference.ablation.plan import read_arms
from causalpima.inference.analyses.scores import read_labels
from causalpima.inference.clusters.names import read_names
from causalpima.inference.command_line.flags import read_graph_file
from causalpima.inference.data.formats import read_file
from causalpima.inference.data.preparation.images import inspect_image
from causalpima.inference.data.preparation.manifest import read_manifest
from causalpima.inference.data.preparation.options import UnusableError
from causalpima.inference.data.tables import read_category_table
from causalpima.inference.findings.arrays import read_start
from causalpima.inference.graphs.export import read_graph
from causalpima.inference.graphs.formats import read_graph_json
from causalpima.inference.naming import has_names
from causalpima.inference.reporting.content import content_of_folder
from causalpima.inference.store.files import FORMAT, FORMAT_KEY, FormatError, check_format, write_json
from causalpima.inference.store.input_files import check_folder, check_regular, open_regular, read_json, read_text
from causalpima.inference.store.posterior_file import read_posterior
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.checkpoint import load_checkpoint


def test_pipes_and_devices_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for name, kind in (("pipe", "a pipe"), ("link", "a device"), ("/dev/null", "a device")):
        with pytest.raises(OSError, match=f"^it is {kind}, no regular file$"):
            read_text(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        check_regular(tmp_path)


def test_a_link_may_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "inside").write_text("i")
    (folder / "a").symlink_to("inside")
    (folder / "b").symlink_to("../secret")
    (tmp_path / "latest").symlink_to("run")
    assert read_text(folder / "a", within=folder) == read_text(tmp_path / "latest" / "a", within=folder) == "i"
    assert read_text(folder / "b") == "s"
    with pytest.raises(OSError, match="it is a link to a file outside of the folder"):
        read_text(folder / "b", within=folder)


def test_a_size_limit_holds_before_the_file_is_read(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(OSError, match="1099511627776 bytes, more than"):
        read_text(tmp_path / "huge")
    with open_regular(tmp_path / "huge", most=2**40) as file:
        assert file.read(2) == b"\0\0"


def test_a_file_with_nul_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(b"cluster,N1\n0,a\0\n")
    with pytest.raises(UnicodeDecodeError, match="position 14: no text has the character NUL"):
        read_text(tmp_path / "table.csv")


def test_json_that_is_nested_deeply(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize("version", [0, -1, True, "1", 1.5, [1]])
def test_a_format_that_is_none(version: object) -> None:
    with pytest.raises(FormatError, match=f"^file: expected {FORMAT_KEY} to be a whole number from 1, got "):
        check_format("file", version)


def test_json_files_say_their_format(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": 1, FORMAT_KEY: 7})
    assert json.loads((tmp_path / "a.json").read_text()) == {FORMAT_KEY: FORMAT, "b": 1}
    assert read_json(tmp_path / "a.json") == {"b": 1}


def test_files_of_a_newer_program_are_refused(tmp_path: Path) -> None:
    folder, newer = RunFolder(tmp_path), FORMAT + 1
    folder.config.write_text(f"{FORMAT_KEY}: {newer}\nnodes: {{}}\n")
    folder.summary.write_text(json.dumps({FORMAT_KEY: newer}))

    xr.Dataset(attrs={FORMAT_KEY: newer}).to_netcdf(folder.posterior, engine="h5netcdf")
    told = (
        rf"expected a file of format {FORMAT} or older, got format {newer}, which a newer version of this program wrote"
    )
    for read in (folder.read_config, folder.read_summary, lambda: read_posterior(folder.posterior)):
        with pytest.raises(FormatError, match=told):
            read()
    with pytest.raises(FormatError, match=told):
        read_graph_json(json.dumps({FORMAT_KEY: newer}))


def test_folders_that_link_to_each_other_and_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a.zarr" / "b").symlink_to("../b")
    (tmp_path / "b" / "a").symlink_to("../a.zarr")
    check_folder(tmp_path / "a.zarr")
    (tmp_path / "b" / "0.0").symlink_to("annexed")
    with pytest.raises(OSError, match=r"^\.\./b/0\.0 in it: No such file or directory$"):
        check_folder(tmp_path / "a.zarr")


@pytest.fixture
def _no_waiting() -> Iterator[None]:
    """A pipe that is opened waits for a writer: for ever, but for this."""

    def hang(*_: object) -> None:
        raise AssertionError("a pipe was opened")

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_no_waiting")
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("labels.csv", lambda path: read_labels(path, 3)),
        ("names.csv", lambda path: read_names(path, {"a": 2}, [1, 1])),
        ("arms.yaml", read_arms),
        ("graph.csv", lambda path: read_graph_file(path, ("A", "B"))),
        ("graph.graphml", read_graph),
        ("table.csv", read_category_table),
        ("samples.csv", read_manifest),
        ("image.png", inspect_image),
        ("data.nc", read_file),
        ("data.npz", read_file),
        ("data.zarr", read_file),
        ("data.zarr/zarr.json", lambda path: read_file(path.parent)),
        ("data.zarr/.zgroup", lambda path: read_file(path.parent)),
        ("data.zarr/load/c/0", lambda path: read_file(path.parents[2])),
        ("names/names.csv", has_names),
        ("posterior.nc", read_posterior),
        ("posterior.nc", lambda path: content_of_folder(RunFolder(path.parent), {"status": "ok"})),
        ("summary.json", lambda path: RunFolder(path.parent).read_summary()),
        ("config.yaml", lambda path: RunFolder(path.parent).read_config()),
        ("start.npz", read_start),
        ("epoch-000001/manifest.json", lambda path: load_checkpoint(path.parent.parent)),
    ],
)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_no_input_is_a_pipe_or_a_device(tmp_path: Path, kind: str, name: str, read: Callable[[Path], object]) -> None:
    (tmp_path / "summary.json").write_text("{}")
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises((ValueError, OSError, UnusableError)) as refused:
        read(tmp_path / name)
    if name != "start.npz":  # of which the message says what makes it anew
        assert f"it is a {kind}, no regular file" in str(refused.value)
