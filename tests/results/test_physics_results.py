"""Physical parameters in the summary, on the terminal and in the report."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from circle_like_fit import circle_like_fit, circle_like_summary, with_law, with_modality

from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.findings.physics import estimate_text, format_estimate
from causalpima.inference.reporting.content import content_of_fit
from causalpima.inference.reporting.page import write_report
from causalpima.inference.reporting.summary import summarise
from causalpima.inference.reporting.terminal import summary_table
from causalpima.inference.store.files import to_json


def law_fit(outcomes: tuple[int, ...] = (2, 2), n_parameters: int = 2) -> FitArrays:
    return with_law(circle_like_fit(200, outcomes, kinds={"curve": "curve"}), "curve", n_parameters)


def physics_lines(summary: dict[str, Any]) -> list[str]:
    lines = summary_table(summary).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Physics"))
    end = next(i for i in range(start + 1, len(lines)) if not lines[i].startswith(" "))
    return [line[11:] for line in lines[start:end]]


def test_the_summary_has_every_parameter_of_every_cell_by_name() -> None:
    fit = law_fit()
    physics = json.loads(to_json(summarise(fit, 0.0)))["modalities"]["curve"]["physics"]
    assert list(physics) == ["0,0", "0,1", "1,0", "1,1"]
    assert physics["1,0"]["p1"] == {
        "value": 14.0,
        "standard_error": 0.25,
        "lower": 13.5,
        "upper": 14.5,
        "unit": "MPa",
        "status": "ok",
        "effective_samples": 7.5,
    }
    unknown = physics["0,1"]["p2"]
    assert (unknown["value"], unknown["standard_error"], unknown["lower"], unknown["upper"]) == (13.0, None, None, None)
    assert (unknown["unit"], unknown["status"]) == ("", "not identified")


def test_the_summary_says_how_each_modality_was_measured_and_modelled() -> None:
    fit = with_modality(circle_like_fit(40, (2,), kinds={"curve": "curve"}), "curve", missing_elements=0.25)
    entry = summarise(fit, 0.0)["modalities"]["curve"]
    assert (entry["kind"], entry["unit"], entry["axis"]) == ("curve", "MPa", {"name": "strain", "unit": "%"})
    assert (entry["missing_elements"], entry["likelihood"], entry["transform"]) == (0.25, "normal", "identity")
    assert "physics" not in entry


def test_a_likelihood_without_variance_is_null_everywhere(tmp_path: Any) -> None:
    history = [{**record, "decoder_variance": {}} for record in circle_like_fit(40).history]
    fit = with_modality(circle_like_fit(40, history=history), "image", variance=None, variance_training=None)
    fit = with_modality(fit, "image", likelihood="poisson")
    summary = summarise(fit, 0.0)
    assert summary["modalities"]["image"]["decoder_variance"] == {"training": None, "reported": None}
    assert "image 28x28x3 (poisson)" in summary_table(summary)
    write_report(content_of_fit(fit, summary), tmp_path / "report.html")
    assert re.search(r"poisson</td><td[^>]*>-</td><td[^>]*>-<", (tmp_path / "report.html").read_text())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"present": 17}, "curve 50 (in 17)"),
        ({"missing_elements": 0.123}, "curve 50 (12 % of elements missing)"),
        ({"missing_elements": 0.0004}, "curve 50 (under 1 % of elements missing)"),
        ({"transform": "log", "likelihood": "student_t"}, "curve 50 (log scale; student_t)"),
    ],
)
def test_the_line_of_the_data_says_what_is_not_plain(changes: dict[str, Any], expected: str) -> None:
    modality = {
        "shape": [50],
        "present": 4096,
        "missing_elements": 0.0,
        "likelihood": "normal",
        "transform": "identity",
    }
    table = summary_table(circle_like_summary(modalities={"curve": modality | changes}))
    assert f"Data circles, seed 3, 4096 samples: {expected} Clusters" in " ".join(table.split())


def test_the_terminal_has_a_row_per_cell_and_a_column_per_parameter() -> None:
    assert physics_lines(summarise(law_fit(), 0.0)) == [
        "curve: estimate ± standard error, given the clusters",
        "               p1                   p2",
        "              MPa",
        "0,0  10.00 ± 0.25         11.00 ± 0.25",
        "0,1  12.00 ± 0.25  13 (not identified)",
        "1,0  14.00 ± 0.25         15.00 ± 0.25",
        "1,1  16.00 ± 0.25         17.00 ± 0.25",
    ]


def test_of_many_cells_and_parameters_the_terminal_shows_some_and_says_so() -> None:
    lines = physics_lines(summarise(law_fit((4, 5), 20), 0.0))
    assert len(lines) < 35
    assert lines[-1] == "8 more cells and 12 more parameters in summary.json"
    assert [line for line in lines if line.startswith(("p", " ")) and "p1" in line]


def test_cells_without_samples_have_no_row() -> None:
    fit = law_fit()
    responsibilities = np.eye(4)[np.arange(200) % 3]
    lines = physics_lines(summarise(replace(fit, responsibilities=responsibilities), 0.0))
    assert [line[:3] for line in lines[3:]] == ["0,0", "0,1", "1,0"]


def test_80_columns_hold_whatever_names_units_and_numbers() -> None:
    fit = law_fit((2, 2), 5)
    physics = fit.modalities["curve"].physics
    assert physics is not None
    long = "a name that somebody thought of long ago "
    physics = replace(
        physics,
        names=tuple(f"{long}{i}" for i in range(5)),
        units=("\x1b[2J" + long,) * 5,
        value=physics.value * np.logspace(-300, 300, 20).reshape(4, 5),
        standard_error=np.full((4, 5), 1e-310),
    )
    graph = replace(fit.graph, outcome_names=((long, long + "2"), (long, long + "3")))
    summary = summarise(replace(with_modality(fit, "curve", physics=physics), graph=graph), 0.0)
    lines = summary_table(summary).splitlines()
    assert max(map(len, lines)) <= 80
    assert "".join(lines).isprintable()


@pytest.mark.parametrize(
    ("value", "error", "expected"),
    [
        (2.1304, 0.0415, "2.130 ± 0.042"),
        (0.0512, 0.00031, "0.05120 ± 0.00031"),
        (71234.0, 1234.0, "71200 ± 1200"),
        (-5.0, 0.096, "-5.000 ± 0.096"),
        (9.99, 0.0996, "9.99 ± 0.10"),
        (1.0, 0.999, "1.0 ± 1.0"),
        (1e-9, 3.0, "0.0 ± 3.0"),
        (2.5e-7, 3e-9, "(2.500 ± 0.030)e-07"),
        (-7.25e9, 1.5e8, "(-7.25 ± 0.15)e+09"),
        (3.0, 0.0, "3.000 ± 0.000"),
        (0.0, 0.0, "0.000 ± 0.000"),
    ],
)
def test_estimates_are_rounded_by_their_errors(value: float, error: float, expected: str) -> None:
    assert format_estimate(value, error) == expected


def test_estimates_without_an_error_say_why() -> None:
    assert estimate_text({"value": 0.05123, "standard_error": None, "status": "at bound"}) == "0.0512 (at bound)"
    assert estimate_text({"value": 1.0, "standard_error": float("nan"), "status": "too few samples"}) == "1 (too few)"
    assert estimate_text({"value": None}) == "-"


def test_the_report_has_a_table_of_the_parameters_and_one_of_the_data(tmp_path: Any) -> None:
    fit = law_fit()
    write_report(content_of_fit(fit, summarise(fit, 0.0)), tmp_path / "report.html")
    text = re.sub(r"<[^>]*>", "|", (tmp_path / "report.html").read_text())
    text = re.sub(r"[|\s]*\|[|\s]*", "|", text)
    assert "|Physical parameters|" in text
    assert "|cell|independent samples|p1 (MPa)|p2|" in text
    assert "|(0, 1)|7.5|12.00 ± 0.25 [11.5, 12.5]|13 (not identified)|" in text
    assert "take the clusters as given" in text
    assert "|curve|50|MPa|strain %|as measured|200|0 %|" in text


def test_a_report_without_laws_has_no_such_section(tmp_path: Any) -> None:
    fit = circle_like_fit(20)
    write_report(content_of_fit(fit, summarise(fit, 0.0)), tmp_path / "report.html")
    assert "Physical parameters" not in (tmp_path / "report.html").read_text()
