from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from circle_like_fit import circle_like_fit
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.findings.drawing import figure_style
from causalpima.inference.reporting import figures
from causalpima.inference.reporting.figures.files import write_figures
from causalpima.inference.store.files import OutputError


def _awkward() -> FitArrays:
    fit = circle_like_fit(30, (2, 3), latent=1, kinds={"a$_b/..": "curve", "x" * 60: "vector", "grey": "image"})
    names = (("$\\q$", "octet\ntruss"), ("a very long outcome name indeed", "ö", "<b>"))
    graph = replace(
        fit.graph, node_names=("_type $x$ of the lattice, as printed", "response\x1b[31m"), outcome_names=names
    )
    factors = {"_f$": np.arange(30) % 14 - 1, "g": np.zeros(30, dtype=int)}
    fit = replace(fit, history=[], measurements={})
    return replace(fit, graph=graph, factors=factors, factor_levels={"g": ("_$",)}, bayes_ceiling=None)


def _not_finite() -> FitArrays:
    fit = circle_like_fit(20)
    image = fit.modalities["image"]
    mixture, graph = fit.mixture, fit.graph
    return replace(
        fit,
        status="diverged",
        responsibilities=fit.responsibilities * np.nan,
        latent_loc=fit.latent_loc * np.nan,
        mixture=replace(mixture, loc=mixture.loc * np.nan, covariance=mixture.covariance * np.nan),
        graph=replace(graph, log_joint=graph.log_joint * np.nan, edge_strength=graph.edge_strength * np.nan),
        modalities={"image": replace(image, exemplars=image.exemplars * np.nan, decoded=image.decoded * np.nan)},
    )


@pytest.mark.parametrize(
    "make",
    [
        _awkward,
        _not_finite,
        lambda: circle_like_fit(10, (5,), latent=3, factors={}, measurements={}, kinds={}),
        lambda: circle_like_fit(70, (3, 4), factors={}, measurements={}, kinds={"c": "curve"}, history=[]),
        lambda: circle_like_fit(12, (2,), latent=1, history=[]),
    ],
    ids=["awkward names", "not finite", "one node", "12 cells", "two cells on a line"],
)
def test_any_fit_can_be_drawn_and_fits_on_its_page(
    make: Callable[[], FitArrays], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = []
    draw = FigureCanvasAgg.draw

    def draw_and_look_at_the_edge(canvas: FigureCanvasAgg) -> None:
        draw(canvas)
        pixels = np.asarray(canvas.buffer_rgba())
        edges.append(min(pixels[[0, -1]].min(), pixels[:, [0, -1]].min()))

    monkeypatch.setattr(FigureCanvasAgg, "draw", draw_and_look_at_the_edge)
    for path in write_figures(make(), tmp_path):
        with Image.open(path) as picture:
            assert min(picture.size) > 30
            assert np.asarray(picture).std() > 0
    assert edges
    assert min(edges) == 255, "something is cut off at the edge of the page"


def test_files_come_in_reading_order(tmp_path: Path) -> None:
    appearance = "nearest_samples_image decoded_means_image outcomes_N1_image outcomes_N2_image outcomes_N3_image"
    names = f"latent_clusters latent_factors {appearance} conditionals objective"
    figures = write_figures(circle_like_fit(40), tmp_path / "a" / "b")
    assert [path.stem for path in figures] == names.split()
    assert all(path.parent == tmp_path / "a" / "b" and path.read_bytes()[:4] == b"\x89PNG" for path in figures)


def test_settings_of_the_process_are_left_alone_even_by_two_threads(tmp_path: Path) -> None:
    fit = circle_like_fit(20, (2, 2), factors={}, measurements={}, history=[], kinds={})
    with matplotlib.rc_context({"font.size": 31.0, "text.parse_math": True}):
        before = dict(matplotlib.rcParams)
        threads = [threading.Thread(target=write_figures, args=(fit, tmp_path / name)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert dict(matplotlib.rcParams) == before
    # The same figures again: what is drawn depends on nothing but the fit.
    a, b = (sorted(path.read_bytes() for path in (tmp_path / name).iterdir()) for name in "ab")
    assert a == b == sorted(path.read_bytes() for path in write_figures(fit, tmp_path / "c"))


def test_style_is_that_of_the_project_whatever_the_user_has_set() -> None:
    with matplotlib.rc_context({"font.size": 31.0, "figure.facecolor": "black"}), figure_style():
        assert matplotlib.rcParams["font.size"] == 8
        assert matplotlib.rcParams["figure.facecolor"] == "white"


def test_no_module_of_the_figures_uses_pyplot() -> None:
    sources = list(Path(figures.__file__).parent.glob("*.py"))
    assert len(sources) > 5
    assert not [path.name for path in sources if "pyplot" in path.read_text()]


def test_a_folder_that_cannot_be_made_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file"):
        write_figures(circle_like_fit(20), tmp_path / "file" / "figures")
