from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from circle_like_fit import circle_like_fit, texts, title, with_law, with_modality
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from causalpima.inference.data.multimodal import Axis
from causalpima.inference.findings.arrays import CurveArrays, FitArrays, ModalityArrays
from causalpima.inference.findings.cell_figures import (
    cells_of,
    draw_cell_fits,
    draw_decoded_means,
    draw_nearest_samples,
    majority_levels,
    value_label,
    value_limits,
)
from causalpima.inference.reporting.figures.files import write_figures


def curve_fit(n_samples: int = 60, outcomes: tuple[int, ...] = (2, 2), **changes: Any) -> FitArrays:
    return circle_like_fit(n_samples, outcomes, kinds={"curve": "curve"}, **changes)


def drawn(fit: FitArrays) -> Figure:
    figure = draw_cell_fits(fit, "curve", cells_of(fit))
    assert figure is not None
    return figure


def lines(figure: Figure, panel: int) -> list[np.ndarray]:
    return [np.asarray(line.get_ydata(), dtype=float) for line in figure.axes[panel].lines]


def legend(figure: Figure) -> list[str]:
    legends = [ax.get_legend() for ax in figure.axes]
    return [text.get_text() for found in legends if found is not None for text in found.get_texts()]


def test_measured_curves_and_the_decoded_mean_stand_over_named_positions() -> None:
    fit = curve_fit()
    curve, figure = fit.modalities["curve"], drawn(fit)
    assert curve.axis is not None
    assert curve.curves is not None
    for cell in range(4):
        *measured, middle = lines(figure, cell)
        np.testing.assert_array_equal(measured, curve.curves.examples[cell])
        np.testing.assert_array_equal(middle, curve.decoded[cell])
        np.testing.assert_array_equal(figure.axes[cell].lines[0].get_xdata(), curve.axis.values)
    assert [ax.get_xlabel() for ax in figure.axes] == ["", "", "strain (%)", "strain (%)"]
    assert [ax.get_ylabel() for ax in figure.axes] == ["curve (MPa)", "", "curve (MPa)", ""]
    assert legend(figure) == ["measured", "decoded mean", "± 2 sd of single curves"]
    for noise_sd, words in (
        (np.full(50, 0.1), "± 2 sd (one noise sd for all positions)"),
        (np.linspace(0.1, 0.2, 50), "± 2 sd of single curves"),
    ):
        assert legend(drawn(with_modality(fit, "curve", noise_sd=noise_sd)))[-1] == words


def test_a_law_is_drawn_with_the_interval_of_its_parameters() -> None:
    fit = with_law(curve_fit(), "curve")
    physics, figure = fit.modalities["curve"].physics, drawn(fit)
    assert physics is not None
    np.testing.assert_array_equal(lines(figure, 2)[-1], physics.curve[2])
    predictive, interval = (np.asarray(band.get_paths()[0].vertices)[:, 1] for band in figure.axes[2].collections)
    decoded = fit.modalities["curve"].decoded[2]
    assert (predictive.min(), predictive.max()) == pytest.approx((decoded.min() - 0.1, decoded.max() + 0.1))
    assert (interval.min(), interval.max()) == pytest.approx((decoded.min() - 0.02, decoded.max() + 0.04))
    assert "95 % interval of the law" in legend(figure)
    assert "fitted law" in texts(figure)


@pytest.mark.parametrize("has_law", [True, False])
def test_the_middle_ends_where_nothing_was_measured_and_a_law_goes_on_dotted(has_law: bool) -> None:
    fit = curve_fit()
    curves = fit.modalities["curve"].curves
    assert curves is not None
    examples = curves.examples.copy()
    examples[0, :, 30:] = np.nan
    fit = with_modality(fit, "curve", curves=replace(curves, examples=examples))
    figure = drawn(with_law(fit, "curve") if has_law else fit)
    solid = figure.axes[0].lines[-1]
    np.testing.assert_array_equal(np.isfinite(np.asarray(solid.get_ydata(), dtype=float)), np.arange(50) < 30)
    dotted = [line for line in figure.axes[0].lines if line.get_linestyle() == ":"]
    assert [np.isfinite(np.asarray(line.get_ydata(), dtype=float)).all() for line in dotted] == [True] * has_law
    assert ("Dotted" in texts(figure), "end where" in texts(figure)) == (has_law, not has_law)
    decoded = draw_decoded_means(fit, "curve", cells_of(fit))
    assert np.isnan(lines(decoded, 0)[0][30:]).all()
    assert "Curves end where none of the cell was measured." in texts(decoded)


def test_titles_say_what_the_samples_mostly_are() -> None:
    fit = curve_fit(outcomes=(2,))
    assignment = cells_of(fit).assignment
    codes = np.where(assignment == 0, 1, -1)
    codes[np.flatnonzero(assignment == 0)[0]] = 0
    fit = replace(fit, factors={"type": codes}, factor_levels={"type": ("gyroid", "octet")})
    n = int((assignment == 0).sum())
    first, second = (title(ax).split("\n") for ax in drawn(fit).axes)
    assert first == [f"(0)  n = {n}", f"octet {(n - 1) / n:.0%}"]
    assert second[1] == "unknown"
    assert majority_levels(fit, np.zeros(60, dtype=bool), 10) == ["unknown"]


def test_of_many_cells_the_fullest_are_shown_and_empty_ones_are_not() -> None:
    fit = curve_fit(400, (20,))
    figure = drawn(fit)
    assert len(figure.axes) == 16
    assert "The 16 fullest of 20 cells with samples are shown." in texts(figure)
    responsibilities = np.roll(np.eye(4)[np.zeros(60, dtype=int)], 2, axis=1)
    assert len(drawn(curve_fit(responsibilities=responsibilities)).axes) == 1


def test_what_is_no_curve_has_no_such_figure() -> None:
    fit = circle_like_fit(20)
    assert draw_cell_fits(fit, "image", cells_of(fit)) is None


def test_a_cell_in_which_nobody_was_measured_says_so() -> None:
    fit = curve_fit()
    curves = fit.modalities["curve"].curves
    assert curves is not None
    examples = curves.examples.copy()
    examples[3] = np.nan
    assert [
        text.get_text() for text in drawn(with_modality(fit, "curve", curves=CurveArrays(examples))).axes[3].texts
    ] == ["not measured"]


def test_of_curves_of_zeros_and_ones_the_mean_is_drawn() -> None:
    fit = curve_fit(outcomes=(2,))
    examples = np.random.default_rng(0).integers(0, 2, (2, 5, 50)).astype(float)
    examples[0, 1, 4] = np.nan
    fit = with_modality(fit, "curve", likelihood="bernoulli", curves=CurveArrays(examples))
    figure = drawn(fit)
    mean, _ = lines(figure, 0)
    np.testing.assert_allclose(mean, np.nanmean(examples[0], axis=0))
    assert legend(figure) == ["mean of measured", "decoded mean"]


def test_lines_break_at_gaps_and_single_points_are_seen() -> None:
    fit = curve_fit(outcomes=(2,))
    exemplars = fit.modalities["curve"].exemplars.copy()
    exemplars[0, [5, 7]] = np.nan
    figure = draw_nearest_samples(with_modality(fit, "curve", exemplars=exemplars), "curve", cells_of(fit))
    broken, whole = figure.axes[0].lines
    assert np.isnan(np.asarray(broken.get_ydata(), dtype=float)[[5, 7]]).all()
    assert (broken.get_markevery(), broken.get_marker(), whole.get_marker()) == ([6], ".", "None")


def test_many_cells_have_positions_and_units_too() -> None:
    fit = curve_fit(outcomes=(3, 3))
    axes = draw_decoded_means(fit, "curve", cells_of(fit)).axes
    axis = fit.modalities["curve"].axis
    assert axis is not None
    assert all(ax.get_xlim() == (axis.values[0], axis.values[-1]) for ax in axes)
    assert axes[-1].get_xlabel() == "strain (%)"
    assert axes[0].get_ylabel() == "curve (MPa)"


@pytest.mark.parametrize(
    ("transform", "knee", "values", "ticks"),
    [
        ("log", 1.0, [0.02, 300.0], ["0.1", "1", "10", "100"]),
        ("asinh", 0.05, [-0.01, 20.0], ["0", "0.1", "1", "10"]),
        ("asinh", 2.0, [-30.0, 20.0], ["-10", "0", "10"]),
        ("log", 1.0, [1e-9, 1e9], ["1e-09", "1e-05", "0.1", "1000", "1e+07"]),
        ("log", 1.0, [2.0, 3.0], None),
        ("log", 1.0, [np.nan, -1.0], None),
    ],
)
def test_values_stand_on_the_scale_on_which_they_were_modelled(
    transform: str, knee: float, values: list[float], ticks: list[str] | None
) -> None:
    fit = with_modality(curve_fit(outcomes=(2,)), "curve", transform=transform, knee=knee)
    examples = np.repeat(np.array(values)[:, None, None], 50, axis=2)
    curves = CurveArrays(examples)
    fit = with_modality(fit, "curve", curves=curves, decoded=examples[:, 0], exemplars=examples[:, 0])
    for figure in (drawn(fit), draw_decoded_means(fit, "curve", cells_of(fit))):
        FigureCanvasAgg(figure).draw()
        assert figure.axes[0].get_yscale() == transform
        assert getattr(figure.axes[0].yaxis.get_transform(), "linear_width", knee) == knee
        labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
        assert labels == ticks if ticks else len(labels) == 2
    assert f"on the {transform} scale" in texts(draw_decoded_means(fit, "curve", cells_of(fit)))


def test_margins_are_even_on_the_scale() -> None:
    modality = ModalityArrays("curve", np.zeros((1, 2)), np.zeros((1, 2)), None, None, transform="log")
    low, high = value_limits(modality, [np.array([1.0, np.nan, 100.0, -5.0])])
    assert low * high == pytest.approx(100.0)
    assert high == pytest.approx(100.0 * 100.0**0.05)


def test_one_position_is_drawn() -> None:
    fit = curve_fit(outcomes=(2,))
    axis = Axis("strain", np.array([3.0]))
    values = np.ones((2, 1))
    changes = {"axis": axis, "decoded": values, "exemplars": values, "curves": CurveArrays(values[:, None])}
    (first, _) = drawn(with_modality(fit, "curve", **changes)).axes
    assert first.lines[0].get_marker() == "."


def test_missing_pixels_are_orange_and_the_note_says_so() -> None:
    fit = circle_like_fit(40, (2,))
    for n_channels in (1, 2, 3):
        values = np.random.default_rng(0).uniform(size=(2, 8, 16, n_channels))
        values[1, 2, 3] = np.nan
        gaps = with_modality(fit, "image", exemplars=values, decoded=values)
        figure = draw_nearest_samples(gaps, "image", cells_of(fit))
        assert "Orange: not measured." in texts(figure)
        image = figure.axes[1].images[0]
        colours = image.to_rgba(np.ma.asarray(image.get_array()))[..., :3]
        is_orange = np.isclose(colours, to_rgb("#D55E00"), atol=1e-6).all(axis=-1)
        assert list(map(tuple, np.argwhere(is_orange))) == [(2, 3)] if n_channels != 2 else [(2, 3), (2, 20)]
    values[1] = np.nan
    whole = with_modality(fit, "image", exemplars=values, decoded=values)
    assert "Orange" not in texts(draw_nearest_samples(whole, "image", cells_of(fit)))


@pytest.mark.parametrize("width", [3, 20])
def test_missing_entries_of_vectors_are_white_and_values_have_their_unit(width: int) -> None:
    fit = circle_like_fit(40, (2,), kinds={"assay": "vector"})
    values = np.random.default_rng(0).normal(size=(2, width))
    values[0, 1] = np.nan
    fit = with_modality(fit, "assay", exemplars=values, decoded=values, unit="g/l")
    figure = draw_nearest_samples(fit, "assay", cells_of(fit))
    assert "White: not measured." in texts(figure)
    labels = [ax.get_ylabel() for ax in (*figure.axes, *figure.axes[0].child_axes)]
    assert "in g/l" in texts(figure) if width == 3 else "assay (g/l)" in labels


@pytest.mark.parametrize(("likelihood", "words"), [("categorical", "most probable categories"), ("bernoulli", "prob")])
def test_decoded_values_that_are_no_plain_means_are_explained(likelihood: str, words: str) -> None:
    fit = with_modality(circle_like_fit(30, (2,)), "image", likelihood=likelihood)
    assert words in texts(draw_decoded_means(fit, "image", cells_of(fit)))
    assert words not in texts(draw_nearest_samples(fit, "image", cells_of(fit)))


@pytest.mark.parametrize("outcomes", [(2,), (3,), (2, 2), (5,), (3, 4)])
def test_figures_with_and_without_laws_fit_on_their_page(
    outcomes: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = []
    draw = FigureCanvasAgg.draw

    def draw_and_look_at_the_edge(canvas: FigureCanvasAgg) -> None:
        draw(canvas)
        pixels = np.asarray(canvas.buffer_rgba())
        edges.append(min(pixels[[0, -1]].min(), pixels[:, [0, -1]].min()))

    monkeypatch.setattr(FigureCanvasAgg, "draw", draw_and_look_at_the_edge)
    fit = with_law(curve_fit(outcomes=outcomes), "curve")
    names = ("3DResyn Bioflex, sterilised twice in ethanol", "b")
    fit = replace(fit, factors={f"f{i}": np.zeros(60, dtype=int) for i in range(5)})
    fit = replace(fit, factor_levels=dict.fromkeys(fit.factors, names), history=[], measurements={})
    present = {"curve": np.arange(60) > 5}
    shares = {"curve": np.where(present["curve"], 0.5, 0.0)}
    fit = replace(fit, present=present, measured_share=shares, sample_names=np.array([f"S{i}" for i in range(60)]))
    files = [path.name for path in write_figures(fit, tmp_path)]
    assert files[0] == "missing.png"
    assert "curves_curve.png" in files
    assert min(edges) == 255, "something is cut off at the edge of the page"


def test_what_is_missing_is_drawn_only_where_something_is(tmp_path: Path) -> None:
    fit = curve_fit(history=[], factors={}, measurements={})
    assert "missing.png" not in [path.name for path in write_figures(fit, tmp_path / "a")]
    fit = replace(fit, measured_share={"curve": np.full(60, 0.9)})
    assert "missing.png" in [path.name for path in write_figures(fit, tmp_path / "b")]


def test_long_names_give_way_to_the_unit() -> None:
    name = "engineering stress in the loading direction"
    modality = curve_fit().modalities["curve"]
    assert value_label(name, modality).endswith(" (MPa)")
    assert len(value_label(name, replace(modality, unit="u" * 50))) == 32


def test_labels_are_not_parsed_as_mathematics(tmp_path: Path) -> None:
    fit = with_modality(
        curve_fit(outcomes=(2,), history=[]), "curve", unit="$x", axis=Axis("a_$b", np.arange(50.0), "$")
    )
    with matplotlib.rc_context({"text.parse_math": True}):
        assert write_figures(fit, tmp_path)
