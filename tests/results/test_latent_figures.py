from __future__ import annotations

from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from circle_like_fit import circle_like_fit, title
from matplotlib.patches import Ellipse

from causalpima.inference.findings.cell_figures import cells_of
from causalpima.inference.reporting.figures.latent import draw_latent_clusters, draw_latent_factors, view_latent


def test_two_dimensions_are_drawn_as_they_are() -> None:
    latent = np.random.default_rng(0).normal(size=(50, 2))
    view = view_latent(latent)
    np.testing.assert_array_equal(view.points, latent[view.rows])
    assert sorted(view.rows) == list(range(50))
    assert view.note == ""


@pytest.mark.parametrize("n_dims", [3, 7])
def test_more_dimensions_are_drawn_on_the_principal_axes(n_dims: int) -> None:
    rng = np.random.default_rng(1)
    latent = rng.normal(size=(300, n_dims)) * np.arange(1, n_dims + 1) @ np.linalg.qr(rng.normal(size=(n_dims,) * 2))[0]
    view = view_latent(latent)
    singular = np.linalg.svd(latent - latent.mean(0), compute_uv=False)
    np.testing.assert_allclose(view.points.std(axis=0) * np.sqrt(300), singular[:2])
    share = singular[0] ** 2 / (singular**2).sum()
    assert view.labels[0] == f"principal axis 1 of {n_dims} ({share:.0%})"


def test_projected_covariances_are_those_of_projected_samples() -> None:
    rng = np.random.default_rng(2)
    view = view_latent(rng.normal(size=(100, 4)) * [4, 3, 2, 1])
    samples = rng.normal(size=(500, 4)) @ rng.normal(size=(4, 4))
    expected = np.cov(view.locations(samples), rowvar=False)
    np.testing.assert_allclose(view.covariances(np.cov(samples, rowvar=False)[None])[0], expected)


def test_a_million_samples_become_5000_and_lost_ones_are_counted() -> None:
    latent = np.zeros((6000, 2))
    latent[:7, 1] = np.nan
    view = view_latent(latent)
    assert len(view.rows) == len(set(view.rows)) == 5000
    assert view.rows.min() >= 7
    assert 2900 < np.mean(view.rows[:2500]) < 3100, "neither in order nor from one end"
    assert view.note == "7 samples have no finite location. 5000 of 5993 samples are drawn, chosen at random."


@pytest.mark.parametrize("latent", [2, 4])
def test_ellipses_are_two_standard_deviations_of_the_components(latent: int) -> None:
    fit = circle_like_fit(200, (2, 3), latent=latent)
    rng = np.random.default_rng(3)
    root = rng.normal(size=(6, latent, latent)) + np.eye(latent)
    fit = replace(fit, mixture=replace(fit.mixture, covariance=root @ root.swapaxes(1, 2)))
    view = view_latent(fit.latent_loc)
    ellipses = [p for p in draw_latent_clusters(fit, view, cells_of(fit)).axes[0].patches if isinstance(p, Ellipse)]
    angle = np.linspace(0, 2 * np.pi, 12)
    for k, ellipse in enumerate(ellipses):
        rim = ellipse.get_patch_transform().transform(np.column_stack([np.cos(angle), np.sin(angle)]))
        offset = rim - view.locations(fit.mixture.loc[k])
        inverse = np.linalg.inv(view.covariances(fit.mixture.covariance[k]))
        np.testing.assert_allclose(np.einsum("ai,ij,aj->a", offset, inverse, offset), 4.0)
    assert len(ellipses) == 6


def test_components_that_explain_nothing_are_not_drawn() -> None:
    fit = circle_like_fit(100)
    weight = np.array([0.0005, *[0.9995 / 7] * 7])
    fit = replace(fit, mixture=replace(fit.mixture, weight=weight))
    figure = draw_latent_clusters(fit, view_latent(fit.latent_loc), cells_of(fit))
    assert len(figure.axes[0].patches) == 7


def test_several_components_of_a_cell_carry_its_name_once() -> None:
    fit = circle_like_fit(100, (2, 2))
    fit = replace(fit, mixture=replace(fit.mixture, cell=np.array([0, 0, 3, 3])))
    ax = draw_latent_clusters(fit, view_latent(fit.latent_loc), cells_of(fit)).axes[0]
    assert [text.get_text() for text in ax.texts] == ["(0, 0)", "(1, 1)"]


def test_a_huge_component_does_not_shrink_the_samples_to_a_dot() -> None:
    fit = circle_like_fit(100)
    covariance = fit.mixture.covariance.copy()
    covariance[0] *= 1e8
    fit = replace(fit, mixture=replace(fit.mixture, covariance=covariance))
    low, high = draw_latent_clusters(fit, view_latent(fit.latent_loc), cells_of(fit)).axes[0].get_xlim()
    assert high - low < 2 * np.ptp(fit.latent_loc[:, 0])


def test_samples_without_finite_responsibilities_belong_to_no_cell() -> None:
    fit = circle_like_fit(30)
    responsibilities = fit.responsibilities.copy()
    responsibilities[:4] = np.nan
    cells = cells_of(replace(fit, responsibilities=responsibilities))
    assert (cells.assignment[:4] == -1).all()
    np.testing.assert_array_equal(cells.counts, np.bincount(fit.responsibilities[4:].argmax(1), minlength=8))


def test_of_many_cells_the_fullest_are_shown() -> None:
    fit = circle_like_fit(500, (10, 10), kinds={})
    cells = cells_of(fit)
    hidden = np.setdiff1d(np.arange(100), cells.shown)
    assert len(cells.shown) == 64
    assert cells.counts[cells.shown].min() >= cells.counts[hidden].max()
    assert cells.note == "The 64 fullest of 100 cells are shown."


def test_a_panel_per_factor_and_measurement() -> None:
    fit = circle_like_fit(50)
    figure = draw_latent_factors(fit, view_latent(fit.latent_loc))
    assert figure is not None
    titles = [title(ax) for ax in figure.axes[:4]]
    assert titles == ["hue", "radius", "shift", "radius (measured)"]
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["red", "blue"]


def test_colours_of_points_are_those_of_their_levels() -> None:
    fit = circle_like_fit(50, measurements={})
    view = view_latent(fit.latent_loc)
    figure = draw_latent_factors(fit, view)
    assert figure is not None
    colours = np.array(figure.axes[0].collections[-1].get_facecolor())[:, :3]
    red, blue = matplotlib.colors.to_rgb("#D55E00"), matplotlib.colors.to_rgb("#0072B2")
    np.testing.assert_allclose(colours, np.where(fit.factors["hue"][view.rows, None] == 0, red, blue))


def test_unknown_and_unnamed_levels_are_shown_as_such() -> None:
    codes = np.arange(50) % 4 - 1
    fit = circle_like_fit(50, factors={"batch": codes}, factor_levels={"batch": ("a", "b")}, measurements={})
    figure = draw_latent_factors(fit, view_latent(fit.latent_loc))
    assert figure is not None
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "2", "unknown"]


def test_nothing_known_is_no_figure() -> None:
    fit = circle_like_fit(20, factors={}, measurements={})
    assert draw_latent_factors(fit, view_latent(fit.latent_loc)) is None
