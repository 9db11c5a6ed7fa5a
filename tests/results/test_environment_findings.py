"""What is said of environments that were declared, and of those that were not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fit_arrays_example import example_fit

from causalpima.inference.findings.meaning import environments_sentence, meaning_sentence, undeclared_environments
from causalpima.inference.reporting.summary import summarise


def told(kind: str = "none", count: int = 3, named: bool = False) -> dict[str, Any]:
    environments = {"n_besides_observational": count, "kind": kind}
    found = {"is_named": named, "equivalent_labellings": 3, "suggestions": ["label some"]}
    return {"environments": environments, "graph": {}, "identifiability": found}


def test_environments_that_were_not_declared_are_told_and_suggested() -> None:
    assert environments_sentence(told()) == (
        "3 environments besides the observational one, not declared: they name no clusters"
    )
    said = meaning_sentence(told())
    assert "What would settle most: name the clusters (python -m inference.name); or declare the environments" in said


def test_declared_ones_are_counted_alone() -> None:
    assert environments_sentence(told("do", 1)) == "1 environment besides the observational one"
    assert undeclared_environments(told("do")) == []


@pytest.mark.parametrize("summary", [{}, told(count=0)])
def test_without_environments_nothing_is_said(summary: dict[str, Any]) -> None:
    assert environments_sentence(summary) == ""
    assert undeclared_environments(summary) == []


def test_what_is_named_already_needs_none() -> None:
    assert undeclared_environments(told(named=True)) == []


@pytest.mark.parametrize("kind", ["none", "do"])
def test_a_summary_counts_them(kind: str) -> None:
    codes = np.arange(11) % 4
    config = {"config": {"environments": {"kind": kind}}}
    summary = summarise(example_fit(environment=codes, attributes=config, history=[]), 0.0)
    assert summary["environments"] == {"n_besides_observational": 3, "kind": kind}
    assert "environments" not in summarise(example_fit(environment=None, history=[]), 0.0)
