"""A run, its contact sheet, names for its clusters, other names, and none; then a run that is named by labels."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from command import svi

from causalpima.inference.name import main
from causalpima.inference.store.files import write_text
from causalpima.inference.store.posterior_file import read_posterior
from causalpima.inference.store.run_folder import FolderChanges

pytestmark = pytest.mark.usefixtures("without_figures")

N = 160
QUICK = [
    "--pretraining.epochs=25",
    "--training.epochs=2",
    "--training.batch_size=16",
    "--training.learning_rate=0.01",
    "--modality.spectrum.encoder.sizes=16",
    "--modality.spectrum.decoder.sizes=16",
    "--read_out.n_init=1",
    "--read_out.shape=curved",
    "--quiet",
]


def truth() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    alloy = rng.integers(0, 2, N)
    return alloy, rng.integers(0, 2, N)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng, (alloy, treated) = np.random.default_rng(1), truth()
    spectrum = 3.0 * np.eye(6)[2 * alloy + treated] + 0.2 * rng.normal(size=(N, 6)) + 5.0
    known = np.where(rng.random(N) < 0.5, np.where(alloy, "steel", "brass"), "")
    path = tmp_path_factory.mktemp("data") / "samples.nc"
    content = {"spectrum": (("sample", "line"), spectrum), "alloy": ("sample", known)}
    xr.Dataset(content).to_netcdf(path, engine="h5netcdf")
    return path


@pytest.fixture(scope="module")
def run(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "a"
    words = ["--data", file, "--modalities", "spectrum", "--nodes", "2,2", "--output_dir", folder, *QUICK]
    outcome = svi(*words)
    assert outcome.status == 0, outcome.err
    return folder


def content_of(folder: Path) -> dict[str, bytes]:
    """All files of a run but the table of names and the contact sheet."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != "names")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def best_cells(folder: Path) -> tuple[np.ndarray, list[str]]:
    variational = read_posterior(folder / "posterior.nc")["variational"]
    return variational.responsibilities.to_numpy().argmax(1), [str(name) for name in variational.cell.to_numpy()]


def fill_in(table: Path, cells: np.ndarray, out: Path) -> Path:
    """The true names of the clusters, with the columns renamed."""
    alloy, treated = truth()
    with table.open() as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["cluster", "size", "N1", "N2"]
    assert [int(row[1]) for row in rows[1:]] == np.bincount(cells, minlength=4).tolist()
    rows[0][2:] = ["alloy", "treated"]
    for row in rows[1:]:
        first = np.flatnonzero(cells == int(row[0]))[0]
        row[2:] = [("brass", "steel")[alloy[first]], ("no", "yes")[treated[first]]]
    with out.open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return out


def test_names_go_in_and_come_out_again(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = best_cells(run)
    assert main([str(run), "--json", str(tmp_path / "shown.json")]) == 0
    assert (run / "names" / "contact_sheet.png").stat().st_size > 1000
    shown = json.loads((tmp_path / "shown.json").read_text())
    assert [entry["size"] for entry in shown["clusters"]] == np.bincount(found, minlength=4).tolist()
    table = fill_in(run / "names" / "names.csv", found, tmp_path / "filled.csv")

    unnamed = content_of(run)
    alloy, treated = truth()
    expected = [f"{('brass', 'steel')[a]},{('no', 'yes')[t]}" for a, t in zip(alloy, treated, strict=True)]
    copy = tmp_path / "copy"
    for words, folder in (["--output_dir", str(copy)], copy), ([], run):
        before = (run / "summary.json").read_text()
        assert main([str(run), "--names", str(table), *words]) == 0
        assert folder is run or (run / "summary.json").read_text() == before, "a copy leaves the run as it was"
        cells, names = best_cells(folder)
        assert np.mean([names[cell] == name for cell, name in zip(cells, expected, strict=True)]) > 0.95
        summary = json.loads((folder / "summary.json").read_text())
        assert summary["nodes"] == {"alloy": 2, "treated": 2}
        assert summary["labelling"]["source"] == "names"
        assert (folder / "names" / "names.csv").read_text() == table.read_text()
    assert "Named by names that were given to the clusters: alloy, treated." in " ".join(
        capsys.readouterr().out.split()
    )

    assert main([str(run)]) == 0, "a table with names is kept, and clusters keep their numbers"
    assert "has names already and is kept" in capsys.readouterr().err
    assert main([str(run), "--remove"]) == 0
    cells, names = best_cells(run)
    np.testing.assert_array_equal(cells, found)
    assert names == ["0,0", "0,1", "1,0", "1,1"]
    assert json.loads((run / "summary.json").read_text())["nodes"] == {"N1": 2, "N2": 2}
    assert content_of(run) == unnamed, "every file is put back, bit for bit"


def test_naming_that_is_interrupted_leaves_the_run_as_it_was(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(run)]) == 0
    table = fill_in(run / "names" / "names.csv", best_cells(run)[0], tmp_path / "filled.csv")
    before = content_of(run)

    def interrupted(changes: FolderChanges) -> None:
        assert (changes.path / "summary.json").is_file(), "all of it is written by now"
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(FolderChanges, "decide", interrupted)
        assert main([str(run), "--names", str(table)]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert content_of(run) == before


def test_a_named_copy_is_whole_or_not_there(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, copy = tmp_path / "names.csv", tmp_path / "copy"
    table.write_text("cluster,size,N1,N2\n0,1,a,c\n1,1,a,d\n2,1,b,c\n3,1,b,d\n")
    words = [str(run), "--names", str(table), "--output_dir", str(copy)]
    with monkeypatch.context() as patched:
        patched.setattr(
            "causalpima.inference.result.write_posterior", lambda *_: write_text(tmp_path / "gone" / "x", "")
        )
        assert main(words) == 2
    assert not copy.exists()
    assert main(words) in (0, 3)
    assert (copy / "config.yaml").is_file()
    assert (copy / "summary.json").is_file()


def test_what_cannot_be_used_is_one_line_and_changes_nothing(
    run: Path, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    (tmp_path / "names.csv").write_text("cluster,size,N1,N2\n0,1,a,b\n1,1,a,b\n2,1,a,c\n3,1,d,b\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    for words, message in (
        ([str(run), "--names", str(tmp_path / "names.csv")], "got (a, b) for clusters 0, 1"),
        ([str(run), "--names", str(tmp_path / "other.csv")], "expected a readable CSV file"),
        ([str(tmp_path), "--names", str(tmp_path / "names.csv")], "expected a run folder"),
        ([str(run), "--names", "names.csv", "--output_dir", str(tmp_path / "full")], "expected a new or empty folder"),
    ):
        assert main(words) == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.err.count("\n") == 1
        assert captured.out == ""
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_other_samples_are_refused(run: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = xr.load_dataset(file, engine="h5netcdf")
    kept = file.read_bytes()
    try:
        (content.assign(spectrum=content.spectrum + 1.0)).to_netcdf(file, engine="h5netcdf")
        assert main([str(run)]) == 2
    finally:
        file.write_bytes(kept)
    assert re.search(
        r"expected the samples that .* was fitted to, got other values of 'spectrum'", capsys.readouterr().err
    )


def test_labels_of_one_node_name_its_outcomes(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "labelled"
    words = ["--data", file, "--modalities", "spectrum", "--nodes", "type=2,response=2", "--observe", "type=alloy"]
    outcome = svi(*words, "--output_dir", folder, *QUICK)
    assert outcome.status == 0, outcome.err
    assert "Which outcome of response is which is arbitrary." in " ".join(outcome.out.split())
    cells, names = best_cells(folder)
    assert names == ["brass,0", "brass,1", "steel,0", "steel,1"]
    assert np.mean(cells // 2 == truth()[0]) > 0.95
    assert main([str(folder)]) == 0
    rows = (folder / "names" / "names.csv").read_text().splitlines()[1:]
    assert [row.split(",")[2:] for row in rows] == [["brass", ""], ["brass", ""], ["steel", ""], ["steel", ""]]
