"""A lab's folder, written by tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from PIL import Image

from causalpima.inference.data.preparation.options import UnusableError

__all__ = ["refused", "write_curve", "write_image", "write_manifest"]


def write_manifest(folder: Path, *lines: str) -> Path:
    path = folder / "samples.csv"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_image(path: Path, pixels: ArrayLike, **how: Any) -> Path:
    Image.fromarray(np.asarray(pixels)).save(path, **how)
    return path


def write_curve(path: Path, x: ArrayLike, y: ArrayLike, header: str = "Strain [%],Stress (MPa)") -> Path:
    path.write_text(
        "\n".join([header, *(f"{a},{b}" for a, b in zip(np.asarray(x), np.asarray(y), strict=True))]) + "\n",
        encoding="utf-8",
    )
    return path


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(UnusableError) as error:
        call()
    return str(error.value)
