"""From a lab's folder to a file, and what a wrong folder is answered."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from PIL import Image

from causalpima.inference.data.preparation import roles as sample_file
from causalpima.inference.data.reading import as_multimodal
from causalpima.inference.prepare import main

LAB = Path(__file__).resolve().parents[2] / "docs" / "example_lab"


def prepare(*arguments: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(argument) for argument in arguments])
    return status, out.getvalue(), err.getvalue()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def opened(path: str = "samples.nc") -> xr.Dataset:
    with xr.open_dataset(path, engine="h5netcdf") as data:
        return data.load()


def pixels(name: str) -> np.ndarray:
    values = np.asarray(Image.open(LAB / "photos" / name))
    return (values / (65535 if values.dtype == np.uint16 else 255)).astype(np.float32)


def test_the_example(home: Path) -> None:
    status, out, err = prepare(LAB / "samples.csv", "--output", "samples.nc", "--json", "report.json")
    assert (status, err) == (0, "")
    data = opened()
    assert list(data["sample"].values) == [f"C{i:02d}" for i in range(1, 11)]
    assert {name: values.attrs.get("role") for name, values in data.data_vars.items()} == {
        "photo": None,
        "compression": None,
        "Density": None,
        "batch": "covariate",
        "replicate_of": "group",
        "resin": "label",
    }
    assert (data["Density"].attrs["units"], data["compression"].attrs["units"]) == ("g/cm3", "MPa")
    assert (data["Strain"].attrs["units"], data["compression"].attrs["kind"]) == ("%", "curve")
    assert (data["photo"].attrs["kind"], str(data["photo"].dtype), data["photo"].shape) == (
        "image",
        "float32",
        (10, 24, 32),
    )
    np.testing.assert_array_equal(data["photo"][0], pixels("C01.png"))
    np.testing.assert_array_equal(data["photo"][2], pixels("C03.tif"))
    np.testing.assert_array_equal(np.isnan(data["photo"].values).all(axis=(1, 2)), np.arange(10) == 6)
    assert not np.isnan(data["photo"].values[np.arange(10) != 6]).any()
    strain, stress = np.loadtxt(LAB / "curves" / "C01.csv", delimiter=",", skiprows=1).T
    expected = np.interp(data["Strain"], strain, stress, right=np.nan)
    np.testing.assert_allclose(data["compression"][0], expected, rtol=1e-12)
    np.testing.assert_array_equal(np.isnan(data["compression"].values).all(axis=1), np.arange(10) == 8)
    np.testing.assert_array_equal(np.isnan(data["Density"]), np.arange(10) == 1)
    assert list(data["replicate_of"].values[5:]) == ["C06", "C07", "C06", "C07", "C10"]
    check_report(json.loads((home / "report.json").read_text()), out)
    assert sorted(path.name for path in home.iterdir()) == ["report.json", "samples.nc", "samples_missing.png"]


def check_report(report: dict[str, object], out: str) -> None:
    assert (report["n_rows"], report["n_samples"]) == (12, 10)
    assert report["dropped"] == [
        {"row": 11, "sample": "C03", "why": "duplicate id, row 3 has it"},
        {
            "row": 12,
            "sample": "C11",
            "why": "no measurement (photo: missing file photos/C11.png; compression: no entry; Density: no entry)",
        },
    ]
    absent = report["absent"]
    assert isinstance(absent, list)
    assert {(a["sample"], a["modality"], a["why"]) for a in absent} == {
        ("C02", "Density", "no entry"),
        ("C07", "photo", "missing file"),
        ("C09", "compression", "no entry"),
    }
    for part in (
        "resin            label                 text with 2 levels",
        "samples.nc: 10 samples of 12 rows",
        "row 11 (C03): duplicate id, row 3 has it",
        "row 7 (C07), photo: missing file: photos/C07.png",
    ):
        assert part in out


def test_the_file_is_read_as_data(home: Path) -> None:
    prepare(LAB / "samples.csv", "--output", "samples.nc")
    data = as_multimodal("samples.nc")
    assert data.kinds == {"photo": "image", "compression": "curve", "Density": "vector"}
    assert list(data.factors) == ["resin"]
    np.testing.assert_array_equal(data.present["photo"], np.arange(10) != 6)
    np.testing.assert_array_equal(data.present["compression"], np.arange(10) != 8)


def test_colours_scalars_and_choices(home: Path) -> None:
    rng = np.random.default_rng(0)
    for name in "ab":
        Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)).save(f"{name}.png")
    Image.fromarray(rng.integers(0, 256, (6, 8), dtype=np.uint8)).save("c.jpg")
    Path("m.csv").write_text("coupon;picture;E [GPa];kind\nx;a.png;1,5;1\ny;b.png;2;1\nz;c.jpg;n.d.;2\n")
    flags = ("--scalars", "E", "--labels", "kind", "--image_size", "4x4", "--image_fit", "pad")
    status, out, err = prepare("m.csv", "--output", "samples.nc", *flags)
    assert (status, err) == (0, "")
    data = opened()
    assert data["picture"].shape == (3, 4, 4, 3)
    np.testing.assert_array_equal(data["picture"][2, ..., 0], data["picture"][2, ..., 2])
    np.testing.assert_array_equal(np.isnan(data["picture"].values).all(axis=(0, 2, 3)), [0, 0, 0, 1])
    np.testing.assert_array_equal(data["E"], [1.5, 2, np.nan])
    assert data["kind"].dtype == np.int64
    assert "row 3 (z), E: no finite number: n.d." in out
    assert "1 of 3 are grey" in out


def test_two_curves_with_one_name_of_the_position(home: Path) -> None:
    for name, end in {"a": 2, "b": 4}.items():
        Path(f"{name}.xy").write_text("strain stress\n" + "".join(f"{i} {i}\n" for i in range(end)))
    Path("m.csv").write_text("id,pull,push\n1,a.xy,b.xy\n2,b.xy,a.xy\n")
    assert prepare("m.csv", "--output", "samples.nc")[0] == 0
    data = opened()
    assert (data["pull"].dims, data["push"].dims) == (("sample", "pull_strain"), ("sample", "push_strain"))


def test_more_samples_than_a_block(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_file, "_MOST_ROWS", 3)
    values = np.random.default_rng(0).normal(size=8)
    Path("m.csv").write_text("id,a,b\n" + "".join(f"s{i},{v},{i}\n" for i, v in enumerate(values)))
    assert prepare("m.csv", "--output", "samples.nc")[0] == 0
    np.testing.assert_array_equal(opened()["a"], values)
    np.testing.assert_array_equal(opened()["b"], np.arange(8))


def test_images_are_not_held(home: Path) -> None:
    """The peak does not grow with the number of images, of 1 MiB each: blocks are of 16 MiB."""
    noise = np.random.default_rng(0).integers(0, 256, (512, 512), dtype=np.uint8)
    Image.fromarray(noise).save("a.png", compress_level=0)
    peaks = []
    for n_samples in (40, 120):
        Path("m.csv").write_text("id,photo\n" + "".join(f"s{i},a.png\n" for i in range(n_samples)))
        tracemalloc.start()
        assert prepare("m.csv", "--output", "samples.nc", "--image_size", "512x512")[0] == 0
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 2**22
    assert opened()["photo"].shape == (120, 512, 512)


@pytest.mark.parametrize(
    ("lines", "flags", "parts"),
    [
        (None, "", ["m.csv: expected a readable table of samples, got none (No such file or directory)"]),
        (["id,photo"], "", ["m.csv: expected a header and a row per sample, got 1 lines"]),
        (
            ["id,word", "1,a", "2,b"],
            "",
            ["expected a column with paths of images or curves, or with numbers, got none"],
        ),
        (
            ["id,photo", "1,a.png"],
            "--images foto",
            ["images: expected a column of m.csv, got 'foto'; there are id, ph"],
        ),
        (["id,photo", "1,a.png", "2,b.png"], "", ["photo: expected a usable entry", "row 1 a.png: missing file"]),
        (["id,curve", "1,a.csv", "2,b.csv"], "", ["curve: expected a usable entry", "row 1 a.csv: missing file"]),
        (["id,mass", "1,x", "2,y"], "--scalars mass", ["mass: expected a usable entry", "row 1 x: no finite number"]),
        (
            ["id,mass", "1,1", "2,2"],
            "--json absent/r.json",
            ["json: expected a file in a folder that you may write to"],
        ),
        (["id,mass", "1,1", "2,2"], "--output absent/s.nc", ["output: expected a file in a folder that you may write"]),
        (["id,sample", "1,1", "2,2"], "", ["sample: expected another name, since sample names the samples"]),
        (
            ["id,a,a_mask", "1,1,0", "2,2,1"],
            "",
            ["a_mask: expected another name, since it would mean what is there of"],
        ),
        (["id,a,replicate_of", "1,1,2", "2,2,1"], "", ["replicate_of: expected chains that end, got 1 -> 2 -> 1"]),
    ],
)
def test_refused(home: Path, lines: list[str] | None, flags: str, parts: list[str]) -> None:
    if lines is not None:
        Path("m.csv").write_text("\n".join(lines) + "\n")
    words = flags.split()
    status, _, err = prepare("m.csv", *([] if "--output" in words else ["--output", "s.nc"]), *words)
    assert status == 2
    assert err.startswith("prepare: error: ")
    assert err.count("\n") == 1
    for part in parts:
        assert part in err
    assert [path.name for path in home.iterdir()] == ([] if lines is None else ["m.csv"])


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.tif"])
def test_all_images_damaged_further_on(home: Path, name: str) -> None:
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64), dtype=np.uint8)).save(name)
    Path(name).write_bytes(Path(name).read_bytes()[:2000])
    Path("m.csv").write_text(f"id,photo,mass\n1,{name},1\n2,{name},2\n")
    status, _, err = prepare("m.csv", "--output", "s.nc")
    assert (status, err.count("\n")) == (2, 1)
    assert f"photo: expected a usable entry in at least one row, got none of 2 (row 1 {name}: unreadable: " in err
    assert sorted(path.name for path in home.iterdir()) == [name, "m.csv"]


def test_an_older_file_stays_whole_when_the_disk_is_full(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("m.csv").write_text("id,mass\n1,1\n2,2\n")
    assert prepare("m.csv", "--output", "s.nc")[0] == 0
    before = Path("s.nc").read_bytes()

    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    status, _, err = prepare("m.csv", "--output", "s.nc")
    assert status == 2
    assert "cannot write s.nc: the disk is full" in err
    assert Path("s.nc").read_bytes() == before
    assert sorted(path.name for path in home.iterdir()) == ["m.csv", "s.nc", "s_missing.png"]


def test_the_page_shows_what_is_printed(home: Path) -> None:
    _, out, _ = prepare(LAB / "samples.csv", "--output", "samples.nc")
    page = (LAB.parent / "prepare.md").read_text(encoding="utf-8")
    assert out.replace(str(LAB), "docs/example_lab") in page


def test_rows_left_out_in_the_middle_shift_nothing(home: Path) -> None:
    Path("m.csv").write_text("id,mass,batch,kind\na,1,5,p\na,9,9,q\nb,,9,q\nc,3,7,q\nd,4,8,p\ne,5,8,p\n")
    assert prepare("m.csv", "--output", "samples.nc")[0] == 0
    data = opened()
    assert list(data["sample"].values) == ["a", "c", "d", "e"]
    np.testing.assert_array_equal(data["mass"], [1, 3, 4, 5])
    np.testing.assert_array_equal(data["batch"], [5, 7, 8, 8])
    assert list(data["kind"].values) == ["p", "q", "p", "p"]


def test_decimal_signs_limits_and_a_sample_called_na(home: Path) -> None:
    Path("m.csv").write_text(
        ";sample;wall;mass;Pb;site\n0;NA;1,18;1.050;<0,04;a\n1;B;1,25;1.100;0,5;b\n2;C;1;2.000;>3;a\n"
    )
    status, out, err = prepare("m.csv", "--output", "samples.nc")
    assert (status, err) == (0, "")
    data = opened()
    assert list(data["sample"].values) == ["NA", "B", "C"]
    np.testing.assert_array_equal(data["mass"], [1050, 1100, 2000])
    np.testing.assert_array_equal(data["Pb"], [0.02, 0.5, 3])
    assert "Pb: 1 below a limit (<) are stored as half of the limit" in out
    assert "mass: '1.050' (row 1) and the like are read as 1050, as other columns are written" in out
    assert "column 1 has no name, and is left out" in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id;a\n1;1,5\n2;2.5\n", "a: expected one decimal sign, got '2.5' (row 2) and '1,5' (row 1)"),
        (
            "id;a\n1;1.050\n2;2.500\n",
            "a: expected numbers with one reading, got '1.050' (row 1), which is 1.05 or",
        ),
        ('id,a\n1,"2\n3,4\n', "m.csv: line 3: expected a table, got none (unexpected end of data)"),
        ("id,a\n1,2,3\n", "m.csv: line 2: expected as many fields in every row as in the header, 2, got 3"),
        (
            "id,a,c\n1,1,a.csv\n2,1,b.csv\n3,2,c.csv\n",
            "c: expected a usable entry in at least half of the rows that have one, got 1 of 3 (row 2 b.csv: ",
        ),
    ],
)
def test_tables_that_cannot_be_told(home: Path, text: str, message: str) -> None:
    Path("m.csv").write_text(text)
    Path("a.csv").write_text("x,y\n1,2\n2,3\n")
    status, _, err = prepare("m.csv", "--output", "s.nc")
    assert (status, err.count("\n")) == (2, 1)
    assert message in err
    assert not Path("s.nc").exists()


def test_a_wide_table_is_one_modality(home: Path) -> None:
    values = np.random.default_rng(0).normal(size=(15, 200)).round(4)
    for heads in ([f"ir_{1000 + 2 * i}" for i in range(200)], [f"{1000 + 2 * i}" for i in range(200)]):
        lines = [",".join(["id", *heads, "mass"])]
        lines += [",".join([f"s{i}", *map(str, row), str(i)]) for i, row in enumerate(values)]
        Path("m.csv").write_text("\n".join(lines).replace("0.1257,", "n.d.,", 1))
        status, out, err = prepare("m.csv", "--output", "samples.nc")
        assert (status, err) == (0, "")
        data = opened()
        name = "ir" if "ir_1000" in heads else "spectrum"
        assert set(data.data_vars) == {name, "mass"}
        expected = np.where(np.arange(3000).reshape(15, 200) == 0, np.nan, values)
        np.testing.assert_array_equal(data[name], expected)
        np.testing.assert_array_equal(data[f"{name}_position"], 1000 + 2 * np.arange(200))
        assert data[name].attrs["kind"] == "curve"
        assert f"{heads[0]} to {heads[-1]}" in out
        assert f"1 entries that are no finite number are stored as missing (row 1, {heads[0]}: 'n.d.')" in out


def test_many_columns_without_a_common_name_are_asked_about(home: Path) -> None:
    names = [f"{a}{b}" for a in "abcdefg" for b in "uvwxyz"]
    rows = [[f"s{i}", *(f"{i}.{j}" for j in range(42))] for i in range(3)]
    Path("m.csv").write_text("\n".join(",".join(row) for row in (["id", *names], *rows)))
    status, _, err = prepare("m.csv", "--output", "samples.nc")
    assert (status, err.count("\n")) == (2, 1)
    assert "at most 30 columns of numbers that are measurements of their own, got 42 (au, av, aw, ...)" in err
    assert prepare("m.csv", "--output", "samples.nc", "--scalars", "au,av")[0] == 0


def test_a_long_table_is_one_of_curves(home: Path) -> None:
    lines = ["sample;t (s);force (N);resin;remark"]
    for name, n_points, resin in (("1", 8, "soft"), ("2", 5, "rigid"), ("3", 6, "soft"), ("4", 6, "rigid")):
        lines += [f"S{name};{0.5 * i};{i * i};{resin};r{i}" for i in range(n_points)]
    Path("m.csv").write_text("\n".join(lines))
    status, out, err = prepare("m.csv", "--output", "samples.nc", "--grid_points", "8")
    assert (status, err) == (0, "")
    data = opened()
    assert list(data["sample"].values) == ["S1", "S2", "S3", "S4"]
    assert (data["force"].dims, data["force"].attrs["units"], data["t"].attrs["units"]) == (("sample", "t"), "N", "s")
    np.testing.assert_allclose(data["force"][0], np.arange(8) ** 2)
    np.testing.assert_array_equal(np.isnan(data["force"].values).sum(axis=1), [0, 3, 2, 2])
    assert list(data["resin"].values) == ["soft", "rigid", "soft", "rigid"]
    assert "25 rows of 4 samples: force (N) over t (s)" in out
    assert "left out, since they differ within a sample: remark" in out
