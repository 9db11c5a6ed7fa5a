from __future__ import annotations

import numpy as np
from circle_like_fit import circle_like_fit, texts, title
from matplotlib.figure import Figure

from causalpima.inference.reporting.figures.fit import draw_objective


def test_objective_shows_both_splits_and_a_panel_per_quantity() -> None:
    figure = draw_objective(circle_like_fit(20))
    assert figure is not None
    labels = [line.get_label() for line in figure.axes[0].lines if not str(line.get_label()).startswith("_")]
    assert labels == ["training", "validation"]
    titles = [title(ax) for ax in figure.axes]
    assert titles == [
        "collapsed objective, higher is better",
        "term: image (nats)",
        "term: latent (nats)",
        "term: node (nats)",
        "effective components",
        "temperature",
        "decoder variance, image",
    ]


def test_a_curve_is_not_drawn_across_the_two_phases() -> None:
    fit = circle_like_fit(20)
    figure = draw_objective(fit)
    assert figure is not None
    pretraining, training = (np.asarray(line.get_ydata(), dtype=float) for line in figure.axes[0].lines[:2])
    np.testing.assert_array_equal(np.isfinite(pretraining), np.arange(35) < 20)
    np.testing.assert_array_equal(np.isfinite(training), np.arange(35) >= 20)


def test_distillation_has_a_panel_of_its_own() -> None:
    """Its objective is minus a divergence: after the bound on one scale it would look as if the fit had got worse."""
    fit = circle_like_fit(20)
    after = [
        {"epoch": len(fit.history) + epoch, "phase": "distillation", "objective": -3.0 / epoch} for epoch in (1, 2, 3)
    ]
    figure = draw_objective(circle_like_fit(20, history=[*fit.history, *after]))
    assert figure is not None
    assert title(figure.axes[-1]) == "distillation: minus divergence (nats)"
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in figure.axes[-1].lines])
    np.testing.assert_allclose(drawn[np.isfinite(drawn)], [-3.0, -1.5, -1.0])
    assert all(len(np.asarray(line.get_ydata())) == len(fit.history) for line in figure.axes[0].lines)
    assert "not finite" not in texts(figure)


def test_divergence_is_marked_and_gaps_are_left() -> None:
    history = [dict(record) for record in circle_like_fit(20).history]
    for record in history[30:]:
        record |= {"objective": float("nan"), "validation_objective": None, "terms": {}}
    figure = draw_objective(circle_like_fit(20, history=history))
    assert figure is not None
    assert "not finite at epoch 31" in texts(figure)
    assert "not finite" not in texts(draw_objective(circle_like_fit(20)) or Figure())


def test_bare_records_and_epochs_that_start_again_are_drawn() -> None:
    phases = ["pretraining", "pretraining", "training", "training"]
    history = [
        {"epoch": epoch, "phase": phase, "objective": 1.0, "validation_objective": None}
        for epoch, phase in zip([1, 2, 1, 2], phases, strict=True)
    ]
    figure = draw_objective(circle_like_fit(20, history=history))
    assert figure is not None
    assert len(figure.axes) == 1
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_xdata(), [1, 2, 3, 4])


def test_no_history_is_no_figure() -> None:
    assert draw_objective(circle_like_fit(20, history=[])) is None


def test_a_start_far_off_does_not_flatten_the_rest() -> None:
    history = [dict(record) for record in circle_like_fit(20).history]
    history[0]["objective"] = -1e9
    figure = draw_objective(circle_like_fit(20, history=history))
    assert figure is not None
    low, high = figure.axes[0].get_ylim()
    assert high - low < 1e5
    assert "run off the scale" in texts(figure)


def test_what_is_positive_has_an_axis_from_zero() -> None:
    figure = draw_objective(circle_like_fit(20))
    assert figure is not None
    assert [ax.get_ylim()[0] for ax in figure.axes[-3:]] == [0.0, 0.0, 0.0]
