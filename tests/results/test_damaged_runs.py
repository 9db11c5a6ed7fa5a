"""Run folders that are damaged or forged: commands refuse them in one line, or read them rightly."""

from __future__ import annotations

import json
import pickle
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from circle_like_fit import circle_like_fit
from folders import set_attribute, with_odd_entry

from causalpima.inference import export, report
from causalpima.inference.data.formats import read_file
from causalpima.inference.reporting.arviz import write_posterior
from causalpima.inference.reporting.summary import summarise
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.store.summary_schema import MissingEntryError
from causalpima.inference.training.checkpoint import unpack_state


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without figures and weights, which a report and an export do not need."""
    folder, fit = RunFolder(tmp_path_factory.mktemp("whole") / "run"), circle_like_fit(40, (2, 2))
    folder.create({"nodes": {"N1": 2, "N2": 2}})
    write_posterior(fit, folder.posterior)
    folder.write_summary(summarise(fit, 1.0))
    return folder.path


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


def refusal(command: Any, words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on standard error of a command that refuses; empty of one that does not."""
    status = command.main(words)
    line = capsys.readouterr().err
    assert (status, line.count("\n")) in ((0, 0), (2, 1)), line
    return line


def replaced(run: Path, change: Callable[[h5py.File], object]) -> None:
    """Change `posterior.nc` as a forger does, who brings the checksum in line."""
    with h5py.File(run / "posterior.nc", "r+") as file:
        change(file)
    folder, summary = RunFolder(run), json.loads((run / "summary.json").read_text())
    folder.write_summary({name: entry for name, entry in summary.items() if name != "checksums"})


def test_forged_summaries_are_refused_in_one_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, draw = json.loads((run / "summary.json").read_text()), random.Random(0)
    refused = 0
    for number in range(36):  # the campaign of folders tries more
        content, where = with_odd_entry(plain, draw)
        (run / "summary.json").write_text(json.dumps(content))
        command, output = ((report, "page.html"), (export, "graph.json"))[number % 2]
        line = refusal(command, [str(run), "--output", str(run.parent / output)], capsys)
        assert not line or "summary.json" in line or "as_labelled" in line or "unfinished" in line, where
        refused += bool(line)
    assert refused > 9


def test_missing_entries_are_told_where_they_are_needed(run: Path) -> None:
    content = json.loads((run / "summary.json").read_text())
    del content["objective"], content["seed"], content["clusters"]["sizes"]
    (run / "summary.json").write_text(json.dumps(content))
    found = RunFolder(run).read_summary()
    assert found.get("seed") is None
    with pytest.raises(MissingEntryError, match=r"summary.json: expected an entry objective, got none"):
        found["objective"]
    with pytest.raises(MissingEntryError, match=r"summary.json/clusters: expected an entry sizes, got none"):
        found["clusters"]["sizes"]


def test_a_run_without_checksums_is_read(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads((run / "summary.json").read_text())
    assert set(content.pop("checksums")) == {"posterior.nc"}
    (run / "summary.json").write_text(json.dumps(content))
    assert not refusal(report, [str(run), "--output", str(run.parent / "page.html")], capsys)


def test_a_posterior_with_changed_bytes_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = bytearray((run / "posterior.nc").read_bytes())
    content[len(content) // 2] ^= 1
    (run / "posterior.nc").write_bytes(content)
    line = refusal(report, [str(run), "--output", str(run.parent / "page.html")], capsys)
    assert "posterior.nc: expected the file that the run wrote, got one with other content" in line


def outside(kind: str, file: h5py.File, place: Path) -> None:
    """Let a variable of a file be one of another file."""
    name, shape = "x", (4, 2)
    if kind == "link":
        file[name] = h5py.ExternalLink(str(place), "/secret")
    elif kind == "storage":
        file.create_dataset(name, shape=shape, dtype="u1", external=[(str(place), 0, h5py.h5f.UNLIMITED)])
    else:
        layout = h5py.VirtualLayout(shape=shape, dtype="f4")
        layout[:] = h5py.VirtualSource(str(place), "secret", shape=shape)
        file.create_virtual_dataset(name, layout)


@pytest.mark.parametrize("kind", ["link", "storage", "virtual"])
def test_values_from_other_files_are_refused(
    kind: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with h5py.File(tmp_path / "other.nc", "w") as other:
        other["secret"] = np.ones((4, 2), "f4")
    replaced(run, lambda file: outside(kind, file["variational"], tmp_path / "other.nc"))
    line = refusal(report, [str(run), "--output", str(tmp_path / "page.html")], capsys)
    assert "variational/x" in line
    assert "another file" in line
    with h5py.File(tmp_path / "data.nc", "w") as data:
        outside(kind, data, tmp_path / "other.nc")
    with pytest.raises(ValueError, match=r"part x .*another file"):
        read_file(tmp_path / "data.nc")


FORGED: Mapping[str, Callable[[h5py.File], object]] = {
    "no facts": lambda file: file.attrs.__delitem__("facts"),
    "facts that are a list": lambda file: set_attribute(file, "facts", "[]"),
    "facts with another graph": lambda file: set_attribute(file, "facts", '{"config": {"graph": []}}'),
    "no responsibilities": lambda file: file.__delitem__("variational/responsibilities"),
    "no group": lambda file: file.__delitem__("variational"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_posterior_is_refused(name: str, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replaced(run, FORGED[name])
    assert "posterior.nc" in refusal(report, [str(run), "--output", str(run.parent / "page.html")], capsys)


def exchanged(file: h5py.File, group: str) -> None:
    """Let a text stand in the place of a group."""
    del file[group]
    file[group] = np.array([b"text", b"more"])


def test_text_in_the_place_of_a_group_is_refused(run: Path, recwarn: pytest.WarningsRecorder) -> None:
    replaced(run, lambda file: exchanged(file, "constant_data"))
    with pytest.raises(ValueError, match=r"posterior\.nc: expected the posterior of a run, got something else"):
        RunFolder(run).read_posterior()
    assert not recwarn.list


def test_a_pickle_of_another_kind_is_refused_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(Exception, match="Weights only load failed"):
        unpack_state(pickle.dumps({"a": Path("b")}, protocol=4))
    assert not recwarn.list
