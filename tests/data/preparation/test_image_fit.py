from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from causalpima.inference.data.preparation.images import common_size, fit_image
from causalpima.inference.data.preparation.options import ImageFit

RNG = np.random.default_rng(1)


@pytest.mark.parametrize("how", get_args(ImageFit))
def test_the_right_size_is_left_alone(how: ImageFit) -> None:
    image = RNG.random((4, 6, 3))
    np.testing.assert_array_equal(fit_image(image, (4, 6), how), image.astype(np.float32))


@pytest.mark.parametrize("how", get_args(ImageFit))
@pytest.mark.parametrize("size", [(5, 7), (40, 8), (1, 1), (2, 64)])
def test_shape_range_and_constant_images(how: ImageFit, size: tuple[int, int]) -> None:
    noise, grey = fit_image(RNG.random((16, 24, 3)), size, how), fit_image(np.full((16, 24, 1), 0.3), size, how)
    assert noise.shape == (*size, 3)
    assert noise.dtype == np.float32
    assert np.nanmin(noise) >= 0
    assert np.nanmax(noise) <= 1
    np.testing.assert_allclose(grey[np.isfinite(grey)], 0.3, rtol=1e-6)
    assert np.isfinite(grey).all() or how == "pad"


def test_crop_keeps_the_middle_of_the_longer_side() -> None:
    wide = np.zeros((4, 12, 1))
    wide[:, 4:8] = RNG.random((4, 4, 1))
    np.testing.assert_allclose(fit_image(wide, (4, 4), "crop"), wide[:, 4:8], rtol=1e-6)
    tall = wide.swapaxes(0, 1)
    np.testing.assert_allclose(fit_image(tall, (4, 4), "crop"), tall[4:8], rtol=1e-6)


def test_pad_leaves_borders_unmeasured() -> None:
    wide = RNG.random((2, 6, 1))
    padded = fit_image(wide, (6, 6), "pad")
    assert np.isnan(padded[[0, 1, 4, 5]]).all()
    np.testing.assert_allclose(padded[2:4], wide, rtol=1e-6)


def test_stretch_scales_each_side() -> None:
    ramp = np.linspace(0, 1, 12)[None, :, None].repeat(4, axis=0)
    stretched = fit_image(ramp, (8, 6), "stretch")[..., 0]
    np.testing.assert_allclose(stretched, stretched[:1].repeat(8, axis=0), atol=1e-6)
    np.testing.assert_allclose(stretched[0, 1:-1], ramp[0, :, 0].reshape(6, 2).mean(axis=1)[1:-1], atol=1e-6)


def test_shrinking_weighs_all_pixels() -> None:
    """A triangle of twice the new pixel's width, by hand; without antialiasing, single pixels would be taken."""
    row = RNG.random(16)
    weights = np.zeros((4, 16))
    for i in range(4):
        distance = np.abs((np.arange(16) + 0.5) / 4 - (i + 0.5))
        weights[i] = np.clip(1 - distance, 0, None)
    expected = weights @ row / weights.sum(axis=1)
    found = fit_image(np.tile(row[None, :, None], (4, 1, 1)), (4, 4), "stretch")
    np.testing.assert_allclose(found[0, :, 0], expected, atol=1e-6)


def test_the_commonest_size_shrunk() -> None:
    assert common_size([(3, 5), (30, 20), (30, 20)]) == (30, 20)
    assert common_size([(1000, 4000)]) == (32, 128)
    assert common_size([(1, 10000)]) == (1, 128)
