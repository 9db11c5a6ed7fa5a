"""A user's own file, from the command line to the run folder: roles, gaps, resuming, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from command import contents, differences, svi

from causalpima.inference.check import main as check
from causalpima.inference.command_line.svi_parser import parse
from causalpima.inference.diagnose import main as diagnose
from causalpima.inference.evaluate import main as evaluate
from causalpima.inference.name import main as name

pytestmark = pytest.mark.usefixtures("without_figures")

N = 96
NAN = float("nan")
# Two epochs of pretraining and two of joint training; 2 cells.
_SETTINGS = {
    "nodes": "2",
    "pretraining.epochs": "2",
    "training.epochs": "2",
    "training.batch_size": "16",
    "training.learning_rate": "0.01",
    "graph.start_steps": "5",
    "graph.extra_steps": "1",
    "read_out.n_init": "1",
    "read_out.sizes": "3",
}
FLAGS = [word for name, value in _SETTINGS.items() for word in (f"--{name}", value)]


def coupons(**variables: Any) -> xr.Dataset:
    """Curves with gaps, scalars that some samples lack, a label, groups and a covariate; `variables` go over these."""
    rng = np.random.default_rng(0)
    alloy = rng.integers(0, 2, N)
    load = np.linspace(0, 1, 12) * (1 + alloy)[:, None] + rng.normal(0, 0.05, (N, 12))
    load[:20, 8:] = NAN
    mass = alloy + rng.normal(0, 0.2, N)
    mass[5:25] = NAN
    good: dict[str, Any] = {
        "load": (("sample", "strain"), load, {"units": "MPa"}),
        "mass": ("sample", mass, {"units": "g"}),
        "alloy": ("sample", np.where(alloy, "a", "b"), {"role": "label"}),
        "plate": ("sample", np.arange(N) // 4, {"role": "group"}),
        "batch": ("sample", np.arange(N) % 3, {"role": "covariate"}),
    }
    return xr.Dataset(good | variables, {"strain": ("strain", np.linspace(0, 2, 12), {"units": "%"})})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a file of samples."""
    monkeypatch.chdir(tmp_path)
    coupons().to_netcdf("coupons.nc", engine="h5netcdf")
    return tmp_path


def test_a_run_of_a_file_and_one_that_is_resumed_from_elsewhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = svi("--data", "coupons.nc", *FLAGS)
    assert (whole.status, whole.err) == (0, "")
    first, status = whole.out.split("\n\n")[:2]
    assert first.startswith("coupons: 96 samples (")
    assert "load      12     curve   MPa   96       6.9 %" in first
    assert status.startswith(("Verdict    clear\n", "Verdict    doubtful\n"))
    summary = json.loads((home / "runs" / "coupons-001" / "summary.json").read_text())
    assert summary["dataset"] == "coupons"
    assert set(summary["modalities"]) == {"load", "mass"}
    assert svi("--data", "coupons.nc", *FLAGS, "--stop_after", 2).status == 0
    (home / "elsewhere").mkdir()
    monkeypatch.chdir(home / "elsewhere")
    assert svi("--resume", "../runs/coupons-002").status == 0
    assert differences(contents(home / "runs" / "coupons-001"), contents(home / "runs" / "coupons-002")) == []


@pytest.mark.usefixtures("home")
def test_known_factors_do_not_enter_the_fit() -> None:
    """Any other labels, the same fit; without held-out samples, of which labels choose equal shares."""
    flags = [*FLAGS, "--training.validation_fraction", "0"]
    first = svi("--data", "coupons.nc", *flags, "--output_dir", "one")
    others = np.random.default_rng(1).integers(0, 5, N)
    coupons(alloy=("sample", others, {"role": "label"})).to_netcdf("coupons.nc", engine="h5netcdf")
    assert svi("--data", "coupons.nc", *flags, "--output_dir", "other").status == first.status, "collapsed or not"
    one, other = (contents(Path(folder)) for folder in ("one", "other"))
    assert differences(one["metrics"], other["metrics"]) == []
    names = {place.split(":")[0].rpartition("/")[2] for place in differences(one["posterior"], other["posterior"])}
    assert all("alloy" in name or "factor" in name for name in names), names
    assert one["summary"]["evaluation"] != other["summary"]["evaluation"]


def test_labels_that_are_named_are_scored_alone(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All that the file calls labels is read, so that the fit is the same; of them, those are scored that are named."""
    shift = ("sample", np.arange(N) % 2, {"role": "label"})
    coupons(shift=shift).to_netcdf("coupons.nc", engine="h5netcdf")
    asked = {"all": [], "one": ["--labels", "alloy"], "observed": ["--observe", "N1=shift"]}
    for folder, words in asked.items():
        assert svi("--data", "coupons.nc", *FLAGS, *words, "--output_dir", folder).status in (0, 3)
    scored = {"all": ["alloy", "shift"], "one": ["alloy"], "observed": ["alloy", "shift"]}
    for folder, factors in scored.items():
        capsys.readouterr()
        assert evaluate([folder, "--json", f"{folder}.json"]) == 0
        again = json.loads((home / f"{folder}.json").read_text())
        summary = json.loads((home / folder / "summary.json").read_text())["evaluation"]
        assert list(again["factor_levels"]) == list(summary["factor_levels"]) == factors
        assert list(again["factors"]) == list(summary["factors"]) == list(summary["node_accuracy"]) == factors
        assert ("shift" in capsys.readouterr().out) == ("shift" in factors)
    one, everything = (contents(home / folder) for folder in ("one", "all"))
    assert differences(one["metrics"], everything["metrics"]) == []
    assert one["summary"]["evaluation"]["ari"] == one["summary"]["evaluation"]["factors"]["alloy"]["ari"]
    both = parse(["--data", "coupons.nc", "--nodes", "2", "--labels", "alloy", "--observe", "N1=shift"]).make_data()
    assert both.scored == ("alloy", "shift")


@pytest.mark.usefixtures("home")
def test_a_file_that_changed_is_not_resumed() -> None:
    assert svi("--data", "coupons.nc", *FLAGS, "--stop_after", 1).status == 0
    changed = coupons()
    changed["mass"][0] += 1e-3
    changed.to_netcdf("coupons.nc", engine="h5netcdf")
    refused = svi("--resume", "runs/coupons-001")
    assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert (
        "coupons.nc: expected the samples that runs/coupons-001 was fitted to, got other values of 'mass' in 1 of 96"
        in refused.err
    )
    Path("coupons.nc").unlink()
    refused = svi("--resume", "runs/coupons-001")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "runs/coupons-001/config.yaml: data: expected a readable .nc file, got 'coupons.nc' (No such" in refused.err


def reversed_rows(data: xr.Dataset) -> xr.Dataset:
    return data.isel(sample=slice(None, None, -1))


def other_value(data: xr.Dataset) -> xr.Dataset:
    changed = data.copy(deep=True)
    changed["load"][7, 0] += 1.0
    return changed


def other_label(data: xr.Dataset) -> xr.Dataset:
    return data.assign(alloy=("sample", np.where(np.arange(N) == 3, "a", data.alloy), {"role": "label"}))


def test_a_finished_run_goes_with_its_own_samples_alone(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command that reads a run and its file; labels that were corrected are what `evaluate` is for."""
    assert svi("--data", "coupons.nc", *FLAGS, "--output_dir", "run").status == 0
    kept = (home / "coupons.nc").read_bytes()
    commands = {
        "evaluate": (evaluate, []),
        "check": (check, ["--repetitions", "2"]),
        "diagnose": (diagnose, ["--draws", "2"]),
        "name": (name, []),
    }

    def told(command: str) -> tuple[int, str]:
        main, more = commands[command]
        return main(["run", *more]), capsys.readouterr().err

    for change, got in (
        (reversed_rows, "got its samples in another order, the first that moved is 0;"),
        (other_value, "got other values of 'load' in 1 of 96 samples, first in sample 7;"),
        (other_label, "got other labels 'alloy';"),
    ):
        change(coupons()).to_netcdf("coupons.nc", engine="h5netcdf")
        before = contents(home / "run")
        for command in commands:
            status, err = told(command)
            if (change, command) == (other_label, "evaluate"):
                assert (status, err) == (0, "")
                continue
            assert (status, err.count("\n")) == (2, 1), (command, err)
            assert f"{command}: error: {home / 'coupons.nc'}: expected the samples that run was fitted to, {got}" in err
        assert differences(before, contents(home / "run")) == []
    (home / "coupons.nc").write_bytes(kept)
    assert told("name")[0] == 0


def test_a_dry_run_shows_what_was_read_and_leaves_nothing(home: Path) -> None:
    shown = svi("--data", "coupons.nc", *FLAGS, "--dry_run")
    assert (shown.status, shown.err) == (0, "")
    assert shown.out.startswith("coupons: 96 samples (")
    assert "folder   runs/coupons-001 (not made)" in shown.out
    assert [path.name for path in home.iterdir()] == ["coupons.nc"]


def test_the_configuration_of_a_run_repeats_it(home: Path) -> None:
    flags = ["--modalities", "load,mass", "--covariates", "plate", "--groups", "batch", "--modality.load.weight", "0.5"]
    first = svi("--data", "coupons.nc", *FLAGS, *flags, "--output_dir", "one")
    assert svi("--config", "one/config.yaml", "--output_dir", "other").status == first.status, "collapsed or not"
    assert differences(contents(home / "one"), contents(home / "other")) == []


def test_samples_that_stay_on_disk_make_the_same_run(home: Path) -> None:
    assert svi("--data", "coupons.nc", *FLAGS, "--output_dir", "loaded").status == 0
    assert (
        svi("--data", "coupons.nc", *FLAGS, "--in_memory", "no", "--output_dir", "kept", "--stop_after", 3).status == 0
    )
    assert svi("--resume", "kept").status == 0
    loaded, kept = contents(home / "loaded"), contents(home / "kept")
    assert kept["config"] == loaded["config"].replace("device:", "in_memory: 'no'\ndevice:")
    assert differences({**loaded, "config": ""}, {**kept, "config": ""}) == []


BAD: list[tuple[dict[str, Any], str]] = [
    ({"mass": ("sample", ["heavy"] * N)}, "coupons.nc: mass: expected real numbers, got"),
    ({"mass": ("sample", np.full(N, NAN))}, "coupons.nc: mass: expected at least one present sample, got none"),
    ({"mass": ("sample", np.full(N, 2.0))}, "coupons.nc: mass: expected values that vary, got 2 everywhere"),
    ({"mass": ("sample", np.r_[np.inf, np.arange(N - 1.0)])}, "coupons.nc: mass: expected finite values, got infinity"),
    ({"mass": ("part", np.arange(9.0))}, "coupons.nc: mass: expected the dimension 'sample', got ('part',)"),
    (
        {"mass": ("sample", np.r_[1e20, np.arange(N - 1.0)])},
        "coupons.nc: mass: expected values on one scale",
    ),
    ({"mass_mask": ("sample", np.zeros(N))}, "coupons.nc: mass: expected at least one present sample, got none"),
    ({"mess_mask": ("sample", np.zeros(N))}, "coupons.nc: mess_mask: expected a modality 'mess'"),
    (
        {"alloy": ("sample", [""] * N, {"role": "label"})},
        f"coupons.nc: alloy: expected a label for every sample, got none for {N} of {N}",
    ),
    ({"load": ("sample", np.where(np.arange(N) == 7, NAN, np.arange(N)))}, "first sample 7; leave these samples out"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=range(len(BAD)))
def test_bad_files_are_one_line(home: Path, change: dict[str, Any], message: str) -> None:
    coupons(**change).to_netcdf("coupons.nc", engine="h5netcdf")
    refused(home, message)


@pytest.mark.parametrize(
    ("n", "message"), [(0, "load: expected at least 2 samples"), (1, "load: expected at least 2 sam")]
)
def test_too_few_samples(home: Path, n: int, message: str) -> None:
    coupons().isel(sample=slice(n)).to_netcdf("coupons.nc", engine="h5netcdf")
    refused(home, f"coupons.nc: {message}")


@pytest.mark.parametrize("size", [0, 100, 4000])
def test_a_truncated_file(home: Path, size: int) -> None:
    (home / "coupons.nc").write_bytes((home / "coupons.nc").read_bytes()[:size])
    refused(home, "data: expected a readable .nc file, got 'coupons.nc'")


def test_a_folder_in_place_of_a_file(home: Path) -> None:
    (home / "coupons.nc").unlink()
    (home / "coupons.nc").mkdir()
    refused(home, "data: expected a readable .nc file, got 'coupons.nc' (Is a directory)")


def refused(home: Path, message: str) -> None:
    outcome = svi("--data", "coupons.nc", *FLAGS)
    assert outcome.status == 2, outcome
    assert outcome.out == ""
    assert outcome.err.startswith("svi: error: ")
    assert outcome.err.count("\n") == 1
    assert message in outcome.err
    assert [path.name for path in home.iterdir()] == ["coupons.nc"]
