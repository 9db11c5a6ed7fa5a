"""Designed nodes in words, tables, files and figures."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fit_arrays_example import example_fit

from causalpima.inference.clusters.design import DesignedEffect, DesignedNode, Permutation
from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.findings.designed import (
    designed_group,
    designed_rows,
    designed_sentences,
    designed_summary,
    draw_designed,
)
from causalpima.inference.findings.drawing import figure_style, save_figure
from causalpima.inference.store.files import to_json


def effect(*shape: int, n_outcomes: int = 3, p_value: float = 0.25) -> DesignedEffect:
    rng = np.random.default_rng(0)
    mean, error = rng.normal(size=(n_outcomes, *shape)), rng.uniform(0.1, 0.2, (n_outcomes, *shape))
    difference = mean[1:] - mean[:1]
    return DesignedEffect(
        samples=np.arange(4, 4 + n_outcomes),
        units=np.arange(2, 2 + n_outcomes),
        mean=mean,
        standard_error=error,
        difference=difference,
        lower=difference - 0.3,
        upper=difference + 0.3,
        standardised=np.linspace(0.5, 1.0, n_outcomes - 1),
        explained=0.125,
        test=Permutation(p_value, 999, 6),
    )


NODE = DesignedNode(
    "treatment",
    ("low", "mid", "high"),
    n_labelled=15,
    n_training=18,
    n_groups=9,
    effects={"picture": effect(4, 5, 3), "stress µ": effect(6, p_value=0.002)},
)


def fit_with(**changes: Any) -> FitArrays:
    return example_fit(designed={"response": dataclasses.replace(NODE, **changes)})


def summary_of(node: DesignedNode) -> dict[str, Any]:
    modalities = {"picture": {"present": 20}, "stress µ": {"present": 20, "missing_elements": 0.1}}
    found = {"designed": designed_summary({"response": node}), "n_samples": 20, "modalities": modalities}
    plain: dict[str, Any] = json.loads(to_json(found))
    return plain


def test_the_table_says_how_many_samples_what_is_explained_and_what_it_rests_on() -> None:
    first, warning, assumption, missing = designed_sentences(summary_of(NODE))
    assert first.startswith("response, set by the experimenter (15 of 18 training samples in 9 groups), explains: ")
    assert "picture 12.5 % of the variance (p = 0.25); stress µ 12.5 % of the variance (p = 0.002)." in first
    assert warning == "Warning: the outcome of response is not known of all training samples; the others are left out."
    assert "causal if outcomes were handed out at random" in assumption
    assert missing == "Means are of what was measured: if gaps in stress µ depend on the outcome, they mislead."


def test_a_node_that_is_not_observed_has_a_warning_and_no_assumptions() -> None:
    found = designed_sentences(summary_of(DesignedNode(None, ("0", "1"), 0, 18)))
    assert found == [
        "Warning: response is designed, but not observed: no effects of it; add --observe response=VARIABLE."
    ]
    assert designed_sentences({"n_samples": 3}) == []


def test_small_modalities_have_their_numbers_in_the_summary_and_large_ones_in_the_file() -> None:
    found = summary_of(NODE)["designed"]["response"]["modalities"]
    np.testing.assert_allclose(found["stress µ"]["difference"], NODE.effects["stress µ"].difference)
    assert "difference" not in found["picture"]
    group = designed_group(fit_with())
    np.testing.assert_array_equal(group["difference_response_picture"], NODE.effects["picture"].difference)
    assert group["mean_response_stress µ"].dims == ("outcome_response", "position_stress µ")
    assert group["other_outcome_response"].to_numpy().tolist() == ["mid", "high"]
    assert group["mean_response_stress µ"].attrs["units"] == "MPa"
    assert not designed_group(example_fit()).data_vars


def test_rows_of_the_report_compare_every_outcome_with_the_first() -> None:
    rows = designed_rows(summary_of(dataclasses.replace(NODE, effects={"yield": effect(1)})))
    assert [row[0] for row in rows] == ["response: mid − low in yield", "response: high − low in yield"]
    value = effect(1).difference[0, 0]
    assert rows[0][1:] == ["0.50", "12.5 %", "0.25", "5 and 4", f"{value:.3g} [{value - 0.3:.3g}, {value + 0.3:.3g}]"]


@pytest.mark.parametrize("name", ["picture", "stress µ"])
def test_figures_show_means_and_differences(name: str, tmp_path: Path) -> None:
    with figure_style():
        figure = draw_designed(fit_with(), "response", name)
        assert figure is not None
        save_figure(figure, tmp_path / "designed.png")
    words = " ".join(text.get_text() for text in figure.texts)
    assert f"{name}: effect of response (12.5 % of the variance" in words
    assert ("if gaps" in words.lower() or "gaps depend" in words) == (name == "stress µ")
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert any("mid − low" in title or "difference from low" in title for title in titles)
    assert (tmp_path / "designed.png").stat().st_size > 5000


def test_a_modality_without_an_effect_has_no_figure() -> None:
    assert draw_designed(fit_with(effects={}), "response", "picture") is None
