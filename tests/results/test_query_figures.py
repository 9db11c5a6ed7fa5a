"""Figures of answers: every kind of modality, what is identified and what is not, and what stands on them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from causalpima.inference.analyses.answer import ModalityAnswer, QueryAnswer
from causalpima.inference.analyses.query_sampling import Estimate
from causalpima.inference.analyses.scenarios import GraphSet
from causalpima.inference.data.multimodal import Axis
from causalpima.inference.findings.drawing import figure_style
from causalpima.inference.reporting.figures.query import draw_query, write_query_figures

CHAINS = np.array([[[0, 1], [0, 0]], [[0, 0], [1, 0]]])
SHAPES = {"image": (5, 4, 1), "colour": (5, 4, 3), "curve": (6,), "vector": (4,), "long": (40,), "scalar": (1,)}
LABELS = {"observed": "observed", "seen": "where A=1", "do": "do(A=1)", "do(A=0)": "do(A=0)"}


def estimate_of(shape: tuple[int, ...], rng: np.random.Generator, width: float) -> Estimate:
    low = rng.uniform(0.1, 0.7, shape)
    high = low + width
    return Estimate(low, high, low - 0.1, high + 0.1, high == low)


def answer_of(is_open: bool, has_do: bool = True, **changes: object) -> QueryAnswer:
    rng, width = np.random.default_rng(0), 0.2 if is_open else 0.0
    labels = LABELS if has_do else {"observed": "observed"}
    modalities = {}
    for name, shape in {**SHAPES, "phase": (2, 3)}.items():
        mean = {key: estimate_of(shape, rng, 0.0 if key in ("observed", "seen") else width) for key in labels}
        names = ("do(A=1) - observed", "do(A=1) - do(A=0)") if has_do else ()
        modalities[name] = ModalityAnswer(
            "image" if len(shape) == 3 else "curve" if name == "curve" else "vector",
            "MPa" if name in ("curve", "scalar") else "",
            Axis("strain", np.linspace(0, 2, 6), "%") if name == "curve" else None,
            name == "phase",
            mean,
            {what: estimate_of(shape, rng, width) for what in names},
            rng.uniform(0, 1, (3 if is_open else 1, *shape)),
        )
    answers = ((0,), (1,)) if is_open else ((0, 1),)
    graphs = GraphSet(CHAINS, np.array([0.5, 0.5]), np.zeros(2, dtype=int), "class", "the graph is one of 2 graphs")
    answer = QueryAnswer(
        {"A": "1"} if has_do else {},
        {"B": "0"},
        {"A": ("0", "1"), "B": ("0", "1")},
        graphs,
        {},
        modalities,
        answers,
        labels,
        ("the labelling: by names", "no hidden common cause"),
    )
    return dataclasses.replace(answer, **changes)  # type: ignore[arg-type]


def texts(figure: Figure) -> str:
    words = [text.get_text() for text in figure.texts]
    for ax in figure.axes:
        words += [ax.get_title(loc="left"), ax.get_xlabel(), ax.get_ylabel()]
        words += [label.get_text() for label in ax.get_yticklabels()]
        legend = ax.get_legend()
        words += [] if legend is None else [text.get_text() for text in legend.get_texts()]
    return "\n".join(words)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("name", [*SHAPES, "phase"])
def test_every_kind_stands_beside_what_is_observed(name: str, is_open: bool) -> None:
    with figure_style():
        shown = texts(draw_query(answer_of(is_open), name))
    assert "observed" in shown
    assert "do(A=1)" in shown
    assert "given B=0" in shown
    assert "no hidden common cause, no selection" in shown
    assert ("Not identified: 2 graphs give 2 answers" in " ".join(shown.split())) == is_open
    if name in ("curve", "scalar"):
        assert "(MPa)" in shown
    if name == "curve":
        assert "strain (%)" in shown


def test_images_share_their_scales() -> None:
    with figure_style():
        figure = draw_query(answer_of(False), "image")
    images = [ax.images[0] for ax in figure.axes if ax.images]
    limits = [image.get_clim() for image in images]
    assert limits[:3] == [(0.0, 1.0)] * 3
    assert len(set(limits[3:])) == 1
    low, high = limits[3]
    assert low == -high
    assert {image.get_cmap().name for image in images[3:]} == {"PuOr"}


def test_open_answers_show_the_ends() -> None:
    with figure_style():
        shown = texts(draw_query(answer_of(True), "image"))
    assert "smallest" in shown
    assert "largest" in shown
    assert "likeliest" in shown


def test_plain_conditioning_has_no_causal_words(tmp_path: Path) -> None:
    answer = answer_of(False, has_do=False)
    files = write_query_figures(answer, tmp_path / "figures")
    assert [file.name for file in files] == [f"query_{name}.png" for name in [*SHAPES, "phase"]]
    assert all(file.stat().st_size > 1000 for file in files)
    with figure_style():
        for name in answer.modalities:
            assert "do(" not in texts(draw_query(answer, name))
            assert "common cause, no" not in texts(draw_query(answer, name))
