from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from circle_like_fit import circle_like_fit, texts, title, with_modality

from causalpima.inference.findings.cell_figures import cells_of, draw_decoded_means, draw_nearest_samples


def test_images_are_named_by_cell_and_blank_where_there_is_none() -> None:
    fit = circle_like_fit(60, (2, 2))
    exemplars = fit.modalities["image"].exemplars.copy()
    exemplars[2:] = np.nan
    responsibilities = fit.responsibilities[:, [0, 1, 2, 3]].copy()
    responsibilities[:, 0] += responsibilities[:, 3]
    responsibilities[:, 3] = 0.0
    fit = with_modality(replace(fit, responsibilities=responsibilities), "image", exemplars=exemplars)
    axes = draw_nearest_samples(fit, "image", cells_of(fit)).axes
    assert [title(ax).split("\n")[0] for ax in axes] == ["(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)"]
    assert [text.get_text() for ax in axes for text in ax.texts] == ["not measured", "empty"]
    np.testing.assert_allclose(np.asarray(axes[1].images[0].get_array()), exemplars[1])


@pytest.mark.parametrize(
    ("scale", "shift", "expected"),
    [
        (1.0, 0.0, "from 0 to 1 "),
        (255.0, 0.0, "from 0 to 255 "),
        (4.0, -1.0, "from -1 to 3 "),
        (0.01, 0.0, "from 0 to 0.01 "),
        (0.5, 1024.0, "from 1024 to 1024.5 "),
    ],
)
def test_images_of_any_range_share_one_scale_that_is_stated(scale: float, shift: float, expected: str) -> None:
    fit = circle_like_fit(40, (2, 2))
    image = fit.modalities["image"]
    values = image.decoded * scale + shift
    fit = with_modality(fit, "image", exemplars=values, decoded=values)
    figure = draw_decoded_means(fit, "image", cells_of(fit))
    assert expected in texts(figure)
    np.testing.assert_allclose(np.asarray(figure.axes[3].images[0].get_array()), image.decoded[3], atol=1e-12)


@pytest.mark.parametrize(("n_channels", "shown"), [(1, 1), (2, 2), (4, 4), (31, 6)])
def test_channels_that_are_no_colours_stand_side_by_side(n_channels: int, shown: int) -> None:
    fit = circle_like_fit(30, (2,))
    values = np.random.default_rng(0).uniform(size=(2, 8, 16, n_channels))
    fit = with_modality(fit, "image", exemplars=values, decoded=values)
    figure = draw_nearest_samples(fit, "image", cells_of(fit))
    picture = np.asarray(figure.axes[1].images[0].get_array())
    assert picture.shape == (8, 16 * shown + shown - 1)
    np.testing.assert_allclose(picture[:, -16:].astype(float), values[1, :, :, -1])
    assert ("Side by side" in texts(figure)) == (n_channels > 1)


def test_constant_images_are_drawn() -> None:
    fit = with_modality(circle_like_fit(30, (2,)), "image", exemplars=np.full((2, 4, 4, 1), 3.0))
    assert "from 3 to 4 " in texts(draw_nearest_samples(fit, "image", cells_of(fit)))


@pytest.mark.parametrize(("outcomes", "n_panels"), [((2, 2, 2), 1), ((3, 3), 9)])
def test_few_curves_are_overlaid_and_many_get_a_panel_each(outcomes: tuple[int, ...], n_panels: int) -> None:
    fit = circle_like_fit(60, outcomes, kinds={"curve": "curve"})
    axes = draw_decoded_means(fit, "curve", cells_of(fit)).axes
    lines = [line.get_ydata() for ax in axes for line in ax.lines]
    assert len(axes) == n_panels
    np.testing.assert_array_equal(np.array(lines, dtype=float), fit.modalities["curve"].decoded)


def test_short_vectors_are_written_out_and_a_missing_one_is_blank() -> None:
    fit = circle_like_fit(60, (3,), kinds={"assay": "vector"})
    values = np.array([[1.5, -2.0], [np.nan, np.nan], [3.0, 10.0]])
    fit = with_modality(fit, "assay", exemplars=values, decoded=values)
    (ax,) = draw_nearest_samples(fit, "assay", cells_of(fit)).axes
    assert [text.get_text() for text in ax.texts] == ["not measured", "1.5", "-2", "3", "10"]
    shades = np.asarray(ax.images[0].get_array())
    np.testing.assert_allclose(shades[[0, 2]], [[0.0, 0.0], [1.0, 1.0]])


@pytest.mark.parametrize("transform", ["identity", "log", "asinh"])
def test_single_numbers_are_dots_over_named_values(transform: str) -> None:
    fit = circle_like_fit(60, (3,), kinds={"hardness": "vector"})
    measured, decoded = np.array([[148.0], [np.nan], [400.0]]), np.array([[150.0], [210.0], [390.0]])
    fit = with_modality(fit, "hardness", exemplars=measured, decoded=decoded, unit="HV", transform=transform)
    nearest, means = (draw(fit, "hardness", cells_of(fit)) for draw in (draw_nearest_samples, draw_decoded_means))
    dots = [[np.asarray(found.get_offsets()) for found in figure.axes[0].collections] for figure in (nearest, means)]
    assert [len(found) for found in dots] == [1, 2]
    for offsets, values in zip([*dots[0], *dots[1]], (measured, decoded, measured), strict=True):
        np.testing.assert_array_equal(offsets[:, 0], values[:, 0])
    assert [ax.get_xlabel() for ax in (*nearest.axes, *means.axes)] == ["hardness (HV)"] * 2
    assert nearest.axes[0].get_xlim() == means.axes[0].get_xlim()
    scale = {"identity": "linear"}.get(transform, transform)
    assert (means.axes[0].get_xscale(), means.axes[0].get_yscale()) == (scale, "linear")
    names = [label.get_text() for label in means.axes[0].get_yticklabels()]
    assert [name.split()[0] for name in names] == ["(0)", "(1)", "(2)"]
    assert "not measured" in texts(nearest)
    assert "Open circles" in texts(means)
    assert "Open circles" not in texts(nearest)


def test_a_modality_that_is_missing_somewhere_says_in_how_many_samples_it_is() -> None:
    fit = circle_like_fit(30, present={"image": np.arange(30) < 12})
    assert "Measured in 12 of 30 samples." in texts(draw_nearest_samples(fit, "image", cells_of(fit)))


def test_numbers_far_from_zero_are_less_a_round_number() -> None:
    fit = circle_like_fit(40, (2,))
    values = 1e9 + np.array([[30.0, 31.5], [32.25, np.nan]])
    fit = with_modality(fit, "image", kind="vector", exemplars=values, decoded=values)
    figure = draw_decoded_means(fit, "image", cells_of(fit))
    assert [text.get_text() for text in figure.axes[0].texts] == ["0", "1.5", "2.25"]
    assert "Numbers are values less 1000000030; colour" in texts(figure)
