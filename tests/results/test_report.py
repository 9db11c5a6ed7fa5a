from __future__ import annotations

import base64
import re
import tomllib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from circle_like_fit import circle_like_fit, circle_like_summary
from PIL import Image

from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.reporting.content import content_of_fit
from causalpima.inference.reporting.page import caption, write_report
from causalpima.inference.store.files import OutputError

_VOID = {"meta", "img", "br"}


class _Page(HTMLParser):
    """Tags, attributes and text of a page; refuses tags that do not nest."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


def _figures(folder: Path, *names: str) -> list[Path]:
    paths = [folder / f"{name}.png" for name in names]
    for i, path in enumerate(paths):
        Image.new("RGB", (300 + i, 20)).save(path)
    return paths


def _write(tmp_path: Path, fit: FitArrays | None = None, *figures: str, **changes: object) -> _Page:
    path = tmp_path / "report.html"
    content = content_of_fit(fit or circle_like_fit(40), circle_like_summary(**changes), _figures(tmp_path, *figures))
    write_report(content, path)
    return _Page(path)


def test_the_page_holds_its_pictures_and_loads_nothing(tmp_path: Path) -> None:
    page = _write(tmp_path, None, "latent_clusters", "nearest_samples_image", "graph", "my_own")
    images = [attributes for tag, attributes in page.tags if tag == "img"]
    contents = [str(image["src"]).removeprefix("data:image/png;base64,") for image in images]
    names = ("latent_clusters", "nearest_samples_image", "graph", "my_own")
    assert [base64.b64decode(content) for content in contents] == [(tmp_path / f"{n}.png").read_bytes() for n in names]
    widths = [attributes["style"] for tag, attributes in page.tags if tag == "figure"]
    assert widths == ["--width: 192px", "--width: 193px", "--width: 193px", "--width: 194px"]
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "link", "iframe"})
    assert not [value for _, attributes in page.tags for value in attributes.values() if "://" in str(value)]
    assert "url(" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_figures_stand_in_their_sections_with_captions(tmp_path: Path) -> None:
    text = re.sub(r"\s+", " ", _write(tmp_path, None, "graph", "objective", "decoded_means_image", "my_own").text)
    order = [
        "Clusters",
        "Decoded mean: image.",
        "Graph over the nodes.",
        "Course of the fit.",
        "Further figures",
        "my own.",
    ]
    places = [text.rindex(words) for words in order[1:]]
    assert places == sorted(places)


def test_every_figure_that_is_written_has_a_caption() -> None:
    names = "latent_clusters latent_factors nearest_samples_a_b decoded_means_0 graph conditionals objective"
    names += " curves_a missing"
    assert all(caption(Path(f"{name}.png")).section != "other" for name in names.split())
    assert caption(Path("nearest_samples_a_b.png")).title == "Nearest sample: a_b"
    assert caption(Path("graph_of_mine.png")).title == "Graph over the nodes: of_mine"


def test_numbers_and_cautions_stand_on_the_page(tmp_path: Path) -> None:
    held_out = {"per_sample": -3.5, "standard_error": 0.25, "n_samples": 250, "n_draws": 100, "split": "test"}
    text = _write(tmp_path, held_out_log_likelihood=held_out).text
    for words in (
        "Verdict: clear",
        "8 of 8 occupied, effective number 7.83",
        "No edge is shown: nodes without a meaning have others in every labelling.",
        "On 812 test samples. Random names: the same clusters",
        "(250 test samples)",
        "The Bayes ceiling is that of all samples",
        "840 labellings fit equally well",
        "0.971",
        "4985.12 nats per sample",
    ):
        assert words in text


def test_sizes_and_shares_of_cells_are_those_of_the_responsibilities(tmp_path: Path) -> None:
    fit = circle_like_fit(50, (2,), kinds={})
    r = np.array([[0.9, 0.1]] * 10 + [[0.3, 0.7]] * 40)
    graph = {"node_names": ["N1"], "edge_strength": [[0.0]]}
    text = _write(tmp_path, replace(fit, responsibilities=r), nodes={"N1": 2}, graph=graph).text
    prior = np.exp(fit.graph.log_joint)
    assert f"(0)10{0.42:.3f}{prior[0]:.3f}0.900" in text
    assert f"(1)40{0.58:.3f}{prior[1]:.3f}0.700" in text


def test_a_failed_fit_is_announced_at_the_top(tmp_path: Path) -> None:
    clusters = circle_like_summary()["clusters"] | {"n_occupied": 2}
    page = _write(tmp_path, replace(circle_like_fit(40), status="collapsed"), status="collapsed", clusters=clusters)
    assert 0 < page.text.index("Verdict: failed") < page.text.index("collapsed: 2 of 8 clusters are occupied")
    assert "status failed" in [attributes.get("class") for _, attributes in page.tags]


def test_the_page_is_not_green_where_something_warns(tmp_path: Path) -> None:
    clusters = circle_like_summary()["clusters"] | {"entropy": 0.2}
    page = _write(tmp_path, clusters=clusters)
    assert page.text.count("Clusters are not clean: the mean entropy of q(N|X) is 0.200 nats") == 1
    classes = [attributes.get("class") for _, attributes in page.tags]
    assert "status doubtful" in classes
    assert "status clear" not in classes


def test_sections_without_content_are_left_out(tmp_path: Path) -> None:
    text = _write(tmp_path, None, evaluation=None).text
    assert "Scores" not in text
    assert "What the clusters look like" not in text
    assert "Scores" in _write(tmp_path).text


def test_names_are_escaped_wherever_they_stand(tmp_path: Path) -> None:
    evil = '<script>alert("1")</script>&amp;'
    fit = circle_like_fit(20, (2, 2), kinds={evil: "vector"}, dataset=evil, attributes={"note": evil})
    graph = replace(fit.graph, node_names=(evil, "b"), outcome_names=((evil, "x"), (evil, "y")))
    changes = {
        "dataset": evil,
        "modalities": {evil: {"shape": [5], "present": 20}},
        "nodes": {evil: 2, "b": 2},
        "graph": {"node_names": [evil, "b"], "edge_strength": [[0, 0.9], [0, 0]], "equivalent_labellings": 3},
        "evaluation": circle_like_summary()["evaluation"] | {"node_accuracy": {evil: 0.5}, "assignment": {evil: evil}},
        "versions": {evil: evil},
    }
    page = _write(tmp_path, replace(fit, graph=graph), f"graph_{evil.replace('/', '')}", **changes)
    assert "script" not in {tag for tag, _ in page.tags}
    assert page.text.count(evil) >= 10


def test_a_folder_that_is_missing_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="does not exist"):
        write_report(content_of_fit(circle_like_fit(20), circle_like_summary()), tmp_path / "none" / "report.html")


def test_the_template_is_installed_with_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert "templates/*.html" in project["tool"]["setuptools"]["package-data"]["causalpima.inference.reporting"]
