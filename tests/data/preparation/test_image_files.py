from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lab import refused, write_image
from PIL import Image

from causalpima.inference.data.preparation.images import ImageInfo, inspect_image, read_image

DEEP = np.array([[0, 1, 257], [32768, 40000, 65535]], dtype=np.uint16)
GREY = np.array([[0, 1, 2], [128, 200, 255]], dtype=np.uint8)
COLOUR = np.stack([GREY, GREY[::-1], 255 - GREY], axis=-1)


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_sixteen_bits(tmp_path: Path, suffix: str) -> None:
    path = write_image(tmp_path / f"a.{suffix}", DEEP)
    assert inspect_image(path) == ImageInfo((2, 3), 1)
    np.testing.assert_array_equal(read_image(path, 1)[..., 0], (DEEP / 65535).astype(np.float32))
    np.testing.assert_array_equal(read_image(path, 3), read_image(path, 1).repeat(3, axis=2))


@pytest.mark.parametrize("compression", [None, "tiff_lzw", "tiff_deflate", "packbits"])
def test_compressed_tiff(tmp_path: Path, compression: str | None) -> None:
    path = write_image(tmp_path / "a.tiff", DEEP, compression=compression)
    np.testing.assert_array_equal(read_image(path, 1)[..., 0], (DEEP / 65535).astype(np.float32))


def test_sixteen_bits_of_the_other_byte_order(tmp_path: Path) -> None:
    header = b"MM\0\x2a\0\0\0\x08\0\x08"
    tags = [(256, 3), (257, 2), (258, 16), (259, 1), (262, 1), (273, 110), (278, 2), (279, 12)]
    entries = b"".join(n.to_bytes(2) + (4).to_bytes(2) + (1).to_bytes(4) + v.to_bytes(4) for n, v in tags)
    (tmp_path / "a.tif").write_bytes(header + entries + bytes(4) + DEEP.astype(">u2").tobytes())
    np.testing.assert_array_equal(read_image(tmp_path / "a.tif", 1)[..., 0], (DEEP / 65535).astype(np.float32))


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_eight_bits(tmp_path: Path, suffix: str) -> None:
    grey, colour = write_image(tmp_path / f"g.{suffix}", GREY), write_image(tmp_path / f"c.{suffix}", COLOUR)
    assert (inspect_image(grey), inspect_image(colour)) == (ImageInfo((2, 3), 1), ImageInfo((2, 3), 3))
    np.testing.assert_array_equal(read_image(grey, 1)[..., 0], (GREY / 255).astype(np.float32))
    np.testing.assert_array_equal(read_image(grey, 3), read_image(grey, 1).repeat(3, axis=2))
    np.testing.assert_array_equal(read_image(colour, 3), (COLOUR / 255).astype(np.float32))


def test_jpeg_is_turned_as_the_camera_was_held(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera's top is at the right
    ramp = np.tile(np.arange(0, 256, 8, dtype=np.uint8), (16, 1))
    path = write_image(tmp_path / "a.jpg", ramp, exif=exif, quality=95)
    assert inspect_image(path).size == (32, 16)
    np.testing.assert_allclose(read_image(path, 1)[..., 0], ramp.T / 255, atol=0.02)


def test_transparency_is_white_and_palettes_are_colours(tmp_path: Path) -> None:
    clear = np.dstack([COLOUR, np.array([[0, 255, 255], [255, 255, 0]], dtype=np.uint8)])
    path = write_image(tmp_path / "a.png", clear)
    expected = np.where(clear[..., 3:] == 0, 1.0, COLOUR / 255).astype(np.float32)
    np.testing.assert_array_equal(read_image(path, 3), expected)
    Image.fromarray(COLOUR).convert("P", palette=Image.Palette.ADAPTIVE).save(tmp_path / "p.png")
    np.testing.assert_array_equal(read_image(tmp_path / "p.png", 3), (COLOUR / 255).astype(np.float32))


def test_black_and_white(tmp_path: Path) -> None:
    path = write_image(tmp_path / "a.png", GREY > 100)
    np.testing.assert_array_equal(read_image(path, 1)[..., 0], GREY > 100)


def test_refused(tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("no image")
    Image.fromarray(GREY).save(tmp_path / "stack.tif", save_all=True, append_images=[Image.fromarray(GREY)])
    write_image(tmp_path / "float.tif", GREY.astype(np.float32))
    assert refused(lambda: inspect_image(tmp_path / "none.png")) == "missing file"
    assert refused(lambda: inspect_image(tmp_path)) == "unreadable: Is a directory"
    assert refused(lambda: inspect_image(tmp_path / "text.png")) == "unreadable: no image that Pillow knows"
    assert refused(lambda: inspect_image(tmp_path / "stack.tif")) == "expected one picture, got 2 pages"
    assert refused(lambda: inspect_image(tmp_path / "float.tif")).endswith("got Pillow's mode F")


@pytest.mark.parametrize("suffix", ["png", "jpg", "tif"])
def test_damaged_files_are_told_when_their_pixels_are_read(tmp_path: Path, suffix: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64), dtype=np.uint8)
    path = write_image(tmp_path / f"a.{suffix}", noise)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert refused(lambda: (inspect_image(path), read_image(path, 1))).startswith("unreadable: ")
