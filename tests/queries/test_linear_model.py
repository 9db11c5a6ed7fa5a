"""Counterfactuals of a linear structural equation model on Z: by hand, for linear decoders."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch
from linear_source import NODES, linear_source, summary_of, weight_of

from causalpima.inference.analyses.answer import answer_text, draws_tree
from causalpima.inference.analyses.counterfactual import linear_counterfactual
from causalpima.inference.analyses.query import QueryOptions, answer_query
from causalpima.inference.analyses.scenarios import QuerySource
from causalpima.inference.findings.linear_model import unlike_labels_sentence
from causalpima.inference.store.files import to_json
from causalpima.models.latent_priors import LinearSCM

# alloy -> heat -> hard; an edge that is too weak to be claimed
EDGES = [(0, 1, 0.5), (1, 2, -2.0), (0, 2, 0.1)]


def source_with_scm() -> QuerySource:
    source = linear_source(400)
    prior = LinearSCM(NODES, (2, 2, 2), 1)
    prior.weight.data.zero_()
    for cause, effect, weight in EDGES:
        prior.weight.data[cause, effect] = weight
    prior.label_offset.data = torch.tensor([0.0, 0.2, 0.0])
    source.fitted.model.latent_prior = prior
    return source


def by_hand(source: QuerySource, row: int, value: float) -> np.ndarray:
    """Z had heat been set: alloy keeps its place, hard follows with its own noise."""
    z = source.latent[row]
    return np.array([z[0], value, z[2] - 2.0 * (value - z[1])])


def heat_mean(source: QuerySource, outcome: int) -> float:
    weight = source.responsibilities.reshape(-1, 2, 2, 2)[:, :, outcome].sum((1, 2))
    return float(weight @ source.latent[:, 1] / weight.sum())


@pytest.mark.parametrize("outcome", [0, 1])
def test_abduction_action_prediction_and_decoding_by_hand(outcome: int) -> None:
    source, row = source_with_scm(), 7
    found = linear_counterfactual(source, source.latent[row], source.responsibilities[row], {1: outcome})
    assert found is not None
    heat = int(source.responsibilities[row].reshape(2, 2, 2).sum((0, 2)).argmax())
    z = by_hand(source, row, heat_mean(source, outcome)) if outcome != heat else source.latent[row]
    np.testing.assert_allclose(found.means["hardness"][0], 200 + 20 * weight_of("hardness") @ source.latent[row])
    np.testing.assert_allclose(found.means["hardness"][1], 200 + 20 * weight_of("hardness") @ z)
    np.testing.assert_allclose(found.means["curve"][1], np.exp(1 + 0.5 * weight_of("curve") @ z))
    np.testing.assert_allclose(found.means["image"][1].reshape(-1), weight_of("image") @ z)
    # Standardised levels -1 and 1 are the outcomes 0 and 1.
    np.testing.assert_allclose([found.levels[n][1] for n in NODES], (z + np.array([0, 0.2, 0])) / 2 + 0.5)
    assert found.levels["alloy"][0] == found.levels["alloy"][1]
    assert found.edges == (("heat", "hard", -2.0), ("alloy", "heat", 0.5))


def test_where_nothing_follows_from_the_node_nothing_else_changes() -> None:
    source = source_with_scm()
    hard = int(source.responsibilities[3].reshape(4, 2).sum(0).argmax())
    found = linear_counterfactual(source, source.latent[3], source.responsibilities[3], {2: 1 - hard})
    assert found is not None
    assert [before == after for before, after in found.levels.values()] == [True, True, False]


def test_other_priors_have_no_linear_model() -> None:
    source = linear_source(50)
    assert linear_counterfactual(source, source.latent[0], source.responsibilities[0], {1: 1}) is None
    plain = answer_query(source, {"heat": "yes"}, options=QueryOptions(20, counterfactual="S3")).to_plain()
    assert plain["counterfactual"]["linear_model"] is None


def test_the_answer_says_which_model_it_comes_from() -> None:
    found = answer_query(source_with_scm(), {"heat": "yes"}, options=QueryOptions(20, counterfactual="S3"))
    text = answer_text(found)
    assert "By the linear model (model.prior=linear_scm)" in text
    assert "no evidence of causes" in " ".join(text.split())
    assert "(heat -> hard -2.00, alloy -> heat 0.50)" in " ".join(text.split())
    plain = json.loads(to_json(found.to_plain()))["counterfactual"]["linear_model"]
    assert plain["prior"] == "linear_scm"
    assert plain["edges"][0] == {"cause": "heat", "effect": "hard", "weight": -2.0}
    assert set(plain["levels"]["hard"]) == set(plain["means"]["hardness"]) == {"factual", "counterfactual"}
    # Bounds, which rest on no linear model, stand beside it.
    assert "bounds of what is not identified by any graph" in text


def test_an_outcome_that_no_sample_has_is_refused() -> None:
    source = source_with_scm()
    source.responsibilities.reshape(-1, 2, 2, 2)[:, :, 1] = 0.0  # no sample with heat=yes
    with pytest.raises(ValueError, match=r"do: expected an outcome that some training sample has.*heat=yes"):
        linear_counterfactual(source, source.latent[0], source.responsibilities[0], {1: 1})


def test_setting_what_is_the_case_changes_nothing() -> None:
    source = source_with_scm()
    cell = np.unravel_index(int(source.responsibilities[5].argmax()), source.sizes)
    found = linear_counterfactual(source, source.latent[5], source.responsibilities[5], {0: int(cell[0])})
    assert found is not None
    np.testing.assert_allclose(found.means["image"][1], found.means["image"][0])
    other = linear_counterfactual(source, source.latent[5], source.responsibilities[5], {0: 1 - int(cell[0])})
    assert other is not None
    assert np.abs(other.means["image"][1] - other.means["image"][0]).max() > 0.1


def test_a_node_that_is_set_is_shown_as_set_beside_what_its_block_says() -> None:
    """The block goes to the mean of the outcome, from which a regression reads another number than the outcome's."""
    source = source_with_scm()
    row = int(source.responsibilities.reshape(-1, 2, 2, 2)[:, :, 0].sum((1, 2)).argmax())  # surely heat=no
    found = answer_query(source, {"heat": "yes"}, options=QueryOptions(20, counterfactual=f"S{row}"))
    linear = found.counterfactual.linear  # type: ignore[union-attr]
    assert linear is not None
    assert linear.set_to == {"heat": 1}
    before, after = ((z + 0.2) / 2 + 0.5 for z in (source.latent[row, 1], heat_mean(source, 1)))
    np.testing.assert_allclose(linear.levels["heat"], [before, after])
    assert abs(after - 1) > 0.05
    text = answer_text(found)
    assert f"  heat: set to yes; read off its block: {before:.2f} -> {after:.2f} (0 no, 1 yes)" in text
    assert "  alloy: set to" not in text
    plain = found.to_plain()["counterfactual"]["linear_model"]
    assert plain["set_to"] == {"heat": 1}


@pytest.mark.parametrize("counterfactual", [None, "S3"])
def test_blocks_that_do_not_follow_their_labels_are_told_before_the_numbers(counterfactual: str | None) -> None:
    source = source_with_scm()
    linear = {"label_fit": {"alloy": 0.9, "heat": 0.41, "hard": None}}
    summary = summary_of(graph={**summary_of()["graph"], "linear_scm": linear})
    options = QueryOptions(20, counterfactual=counterfactual)
    found = answer_query(dataclasses.replace(source, summary=summary), {"heat": "yes"}, options=options)
    said = unlike_labels_sentence(summary)
    assert said == "Blocks of heat, hard do not follow the labels: the edges mean nothing."
    plain = json.loads(to_json(found.to_plain()))
    assert plain["warnings"] == [f"linear model (model.prior=linear_scm): {said}"]
    assert list(plain).index("warnings") < list(plain).index("node_probabilities")
    assert json.loads(draws_tree(found).attrs["warnings"]) == plain["warnings"]
    text = " ".join(answer_text(found).split())
    assert 0 < text.index(f"warning: linear model (model.prior=linear_scm): {said}") < text.index("node outcome")


def test_without_doubt_there_is_no_warning() -> None:
    source = source_with_scm()
    linear = {"label_fit": dict.fromkeys(NODES, 0.5)}
    summary = summary_of(graph={**summary_of()["graph"], "linear_scm": linear})
    for asked in (source, dataclasses.replace(source, summary=summary)):
        found = answer_query(asked, {"heat": "yes"}, options=QueryOptions(20))
        assert found.to_plain()["warnings"] == []
        assert "warning:" not in answer_text(found)
