"""The published file layout of the lattices, on files written here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from causalpima.examples.lattices import lattices, load_lattices
from causalpima.inference.data.validation import validate

SIZE = (768, 1024)


def write_curve(folder: Path, name: str, first: float, last: float, points: int = 250) -> None:
    """Time, displacement and force as the test machine writes them: force = 100 d², both negative."""
    displacement = np.linspace(first, last, points)
    table = np.stack([np.arange(points), -displacement, -100 * displacement**2], axis=1)
    np.save(folder / "force_disp_curves" / f"{name}.npy", table)


def write_picture(folder: Path, name: str, pixels: np.ndarray) -> None:
    np.save(folder / "images_microscope" / f"{name}.npy", pixels)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three complete lattices and one with a curve only."""
    for name in ("images_microscope", "images_load", "force_disp_curves", "parameters"):
        (tmp_path / name).mkdir()
    rng = np.random.default_rng(0)
    for name in ("plate12-1_a", "plate12-2_a", "plate13-2_b"):
        write_picture(tmp_path, name, rng.integers(0, 256, (*SIZE, 3), dtype=np.uint8))
    for number, name in enumerate(("plate12-1_a", "plate12-1_c", "plate12-2_a", "plate13-2_b")):
        write_curve(tmp_path, name, 0.01 * number, 1.0 + 0.1 * number)
        np.save(tmp_path / "parameters" / f"{name}.npy", np.arange(3.0))
    return tmp_path


def test_names_pair_files_and_tell_the_type(folder: Path) -> None:
    data = load_lattices(folder)
    validate(data)
    assert data.sample_names is not None
    assert data.sample_names.tolist() == ["plate12-1_a", "plate12-1_c", "plate12-2_a", "plate13-2_b"]
    assert data.factors["type"].tolist() == [0, 0, 1, 1]
    assert data.factor_levels["type"] == ("1", "2")
    assert data.present["image"].tolist() == [True, False, True, True]
    assert data.present["curve"].all()
    assert not data.modalities["image"][1].any()


def test_curves_lie_on_the_common_displacements(folder: Path) -> None:
    data = load_lattices(folder)
    np.testing.assert_allclose(data.axes["curve"].values, np.linspace(0.03, 1.0, 100))
    expected = 100 * np.linspace(0.03, 1.0, 100) ** 2
    np.testing.assert_allclose(data.modalities["curve"], np.tile(expected, (4, 1)), atol=1e-3)


def test_an_absent_curve_is_no_reason_to_drop_the_picture(folder: Path) -> None:
    (folder / "force_disp_curves" / "plate13-2_b.npy").unlink()
    data = load_lattices(folder)
    assert data.present["curve"].tolist() == [True, True, True, False]
    assert data.present["image"][3]
    assert data.axes["curve"].values[0] == pytest.approx(0.02)


def test_pictures_are_the_block_means_of_the_central_square(folder: Path) -> None:
    pixels = np.load(folder / "images_microscope" / "plate12-1_a.npy")
    square = pixels[154 : 154 + 460, 282 : 282 + 460].mean(axis=2) / 255
    found = load_lattices(folder, side=46).modalities["image"]
    assert found.shape == (4, 46, 46, 1)
    np.testing.assert_allclose(found[0, ..., 0], square.reshape(46, 10, 46, 10).mean(axis=(1, 3)), atol=1e-6)


def test_pixels_that_lie_across_an_edge_count_in_parts(folder: Path) -> None:
    ramp = np.tile(np.arange(460) // 2, (460, 1)).astype(np.uint8)
    write_picture(folder, "plate12-1_a", ramp)
    found = load_lattices(folder, side=32).modalities["image"][0, ..., 0]
    # The integral of the staircase over each of 32 intervals of 14.375 pixels.
    steps = np.concatenate([[0.0], np.cumsum(np.arange(460) // 2 / 255)])
    integral = np.interp(np.arange(33) * 14.375, np.arange(461), steps)
    np.testing.assert_allclose(found, np.tile(np.diff(integral) / 14.375, (32, 1)), atol=1e-6)


def test_the_option_of_the_data_set_selects_the_files(folder: Path) -> None:
    data = lattices(data=str(folder), side=16)
    assert data.modalities["image"].shape == (4, 16, 16, 1)
    assert data.bayes_ceiling is None


def spoil_label(folder: Path) -> None:
    write_curve(folder, "plate-12", 0.0, 1.0)


def spoil_two_labels(folder: Path) -> None:
    write_curve(folder, "plate-1_-2", 0.0, 1.0)


def spoil_folder(folder: Path) -> None:
    (folder / "force_disp_curves").rename(folder / "curves")


def spoil_files(folder: Path) -> None:
    for path in (folder / "images_microscope").iterdir():
        path.unlink()


def spoil_size(folder: Path) -> None:
    write_picture(folder, "plate12-2_a", np.zeros((460, 459, 3), dtype=np.uint8))


def spoil_type(folder: Path) -> None:
    write_picture(folder, "plate12-2_a", np.zeros(SIZE))


def spoil_channels(folder: Path) -> None:
    write_picture(folder, "plate12-2_a", np.zeros((*SIZE, 7), dtype=np.uint8))


def spoil_columns(folder: Path) -> None:
    np.save(folder / "force_disp_curves" / "plate12-2_a.npy", np.zeros((30, 2)))


def spoil_points(folder: Path) -> None:
    np.save(folder / "force_disp_curves" / "plate12-2_a.npy", np.full((30, 3), np.nan))


def spoil_range(folder: Path) -> None:
    write_curve(folder, "plate12-2_a", 3.0, 4.0)


def spoil_bytes(folder: Path) -> None:
    path = folder / "force_disp_curves" / "plate12-2_a.npy"
    path.write_bytes(path.read_bytes()[:300])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_label, "plate-12: expected '-1' or '-2' in the name"),
        (spoil_two_labels, "plate-1_-2: expected '-1' or '-2' in the name"),
        (spoil_folder, "data: expected a folder 'force_disp_curves' in"),
        (spoil_files, "data: expected .npy files in .*images_microscope"),
        (spoil_size, r"plate12-2_a.npy: expected uint8 .* got uint8 \[460, 459, 3\]"),
        (spoil_type, r"plate12-2_a.npy: expected uint8 .* got float64 \[768, 1024\]"),
        (spoil_channels, r"plate12-2_a.npy: expected uint8 .* got uint8 \[768, 1024, 7\]"),
        (spoil_columns, r"plate12-2_a.npy: expected numbers \[point, column\] .* got float64 \[30, 2\]"),
        (spoil_points, "plate12-2_a.npy: expected finite displacements and forces"),
        (spoil_range, "curve: expected displacements that all curves have in common, got none"),
        (spoil_bytes, "plate12-2_a.npy: "),
    ],
)
def test_bad_files_are_named_in_one_line(folder: Path, spoil: Callable[[Path], None], message: str) -> None:
    spoil(folder)
    with pytest.raises(ValueError, match=message) as caught:
        load_lattices(folder)
    assert "\n" not in str(caught.value)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"data: expected a folder 'images_microscope' in .*nowhere"):
        load_lattices(tmp_path / "nowhere")
