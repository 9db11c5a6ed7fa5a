"""The published file layout of the measured lattices: one NumPy file per picture and per curve."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from inference.data.multimodal import Axis, MultimodalData

__all__ = ["load_lattices"]

_FOLDERS = {"image": "images_microscope", "curve": "force_disp_curves"}
_CROP = 460
_POINTS = 100
_LABEL = re.compile(r"-([12])(?!\d)")
_DISPLACEMENT, _FORCE = 1, 2


def load_lattices(folder: str | Path, side: int = 32) -> MultimodalData:
    """Read measured lattices from a folder in the layout that the authors' program reads.

    `folder/images_microscope/NAME.npy` is a picture, uint8 `[height, width, 3]` or `[height, width]` of at least
    460 x 460 pixels; its grey values are cropped to the central 460 x 460 and averaged over blocks to `side` pixels.
    `folder/force_disp_curves/NAME.npy` is a curve, `[point, column]` with the displacement in column 1 and the force in
    column 2, both negative in compression; it is interpolated on 100 equal steps of the displacement that all curves
    have in common. NAME pairs them, and holds `-1` or `-2`, the type. A lattice that has only one of the two files
    lacks the other modality. The folders `images_load` and `parameters` of the layout are not needed.

    Args:
        folder: Folder that holds the two.
        side: Pixels along a side of the picture.

    Returns:
        Modalities `image`, `[sample, side, side, 1]` in [0, 1], and `curve`, force by displacement in the units of the
        files; the factor `type` with the levels of the names, `1` and `2`; the names.

    Raises:
        ValueError: A folder that is not there or holds no sample, a name without one of the two labels, a file that
            cannot be read, or one of another shape; one line that names the file.
    """
    paths = {modality: _paths(Path(folder).expanduser(), name) for modality, name in _FOLDERS.items()}
    names = sorted(set().union(*paths.values()))
    labels = np.array([_label(name) for name in names])
    curves = {name: _read(path, _curve) for name, path in paths["curve"].items()}
    pictures = {name: _read(path, _picture(side)) for name, path in paths["image"].items()}
    displacement = _common_grid(curves)
    forces = {name: np.interp(displacement, *curve) for name, curve in curves.items()}
    return MultimodalData(
        name="lattices",
        modalities={"image": _stacked(names, pictures, (side, side, 1)), "curve": _stacked(names, forces, (_POINTS,))},
        present={modality: np.array([name in paths[modality] for name in names]) for modality in _FOLDERS},
        kinds={"image": "image", "curve": "curve"},
        factors={"type": labels},
        factor_levels={"type": ("1", "2")},
        axes={"curve": Axis("displacement", displacement)},
        sample_names=np.array(names),
    )


def _paths(folder: Path, name: str) -> dict[str, Path]:
    if not (folder / name).is_dir():
        raise ValueError(f"data: expected a folder {name!r} in {str(folder)!r}, got none; see docs/lattices.md")
    paths = {path.stem: path for path in sorted((folder / name).glob("*.npy"))}
    if not paths:
        raise ValueError(f"data: expected .npy files in {str(folder / name)!r}, got none; see docs/lattices.md")
    return paths


def _label(name: str) -> int:
    found = set(_LABEL.findall(name))
    if len(found) != 1:
        raise ValueError(f"{name}: expected '-1' or '-2' in the name, the type of the lattice; rename the files")
    return int(found.pop()) - 1


def _read(path: Path, convert: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    try:
        return convert(np.load(path, allow_pickle=False))
    except (OSError, EOFError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(f"{path}: {reason}; see docs/lattices.md") from error


def _picture(side: int) -> Callable[[np.ndarray], np.ndarray]:
    def convert(pixels: np.ndarray) -> np.ndarray:
        if not _is_photograph(pixels):
            raise ValueError(
                f"expected uint8 [height, width] or [height, width, 3] of at least {_CROP} x {_CROP} pixels, got "
                f"{pixels.dtype} {list(pixels.shape)}"
            )
        grey = pixels.reshape(*pixels.shape[:2], -1).mean(axis=2) / 255.0
        top, left = ((length - _CROP) // 2 for length in grey.shape)
        return _averaged(grey[top : top + _CROP, left : left + _CROP], side)[..., None]

    return convert


def _is_photograph(pixels: np.ndarray) -> bool:
    if pixels.dtype != np.uint8 or pixels.ndim < 2:
        return False
    return pixels.shape[2:] in ((), (3,)) and min(pixels.shape[:2]) >= _CROP


def _averaged(square: np.ndarray, side: int) -> np.ndarray:
    """Mean of every pixel's share of the square, fractions of source pixels included."""
    weights = _overlaps(len(square), side)
    return weights @ square @ weights.T


def _overlaps(before: int, after: int) -> np.ndarray:
    """Share of each of `before` equal intervals in each of `after`, rows sum to 1, `[after, before]`."""
    edges = np.arange(after + 1) * before / after
    upper = np.minimum(edges[1:, None], np.arange(1, before + 1))
    lower = np.maximum(edges[:-1, None], np.arange(before))
    return np.clip(upper - lower, 0.0, None) * after / before


def _curve(table: np.ndarray) -> np.ndarray:
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] <= _FORCE or table.dtype.kind not in "fiu":
        raise ValueError(
            "expected numbers [point, column] of at least 2 points and 3 columns (the second is the displacement, the "
            f"third the force), got {table.dtype} {list(table.shape)}"
        )
    curve = -table[:, [_DISPLACEMENT, _FORCE]].astype(float).T
    if not np.isfinite(curve).all():
        raise ValueError("expected finite displacements and forces, got others; remove these points")
    return curve[:, np.argsort(curve[0], kind="stable")]


def _common_grid(curves: dict[str, np.ndarray]) -> np.ndarray:
    first, last = max(curve[0, 0] for curve in curves.values()), min(curve[0, -1] for curve in curves.values())
    if first >= last:
        raise ValueError(
            f"curve: expected displacements that all curves have in common, got none (one begins at {first:.4g}, one "
            f"ends at {last:.4g}); remove the files of broken tests"
        )
    return np.linspace(first, last, _POINTS)


def _stacked(names: list[str], values: dict[str, np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    empty = np.zeros(shape, dtype=np.float32)
    return np.stack([values.get(name, empty).astype(np.float32) for name in names])
