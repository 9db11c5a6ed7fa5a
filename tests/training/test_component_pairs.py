"""Every legal pair of components trains to finite numbers; every other pair is refused by name and with a reason.

Which pairs are legal is what the configuration itself accepts (`inference.training.limits.RULES` and the
other checks); the pairs are held by as few rows as a greedy search finds, each of which is trained for a few steps.
"""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
import torch
from component_levels import DEFAULTS, LEVELS, Row, config_of, samples_of
from component_rows import illegal_pairs, legal_pairs, pairs_of, refusal, row_name, rows

from causalpima.guides.encoders import GaussianParameters
from causalpima.guides.fusion import FUSIONS, Fusion, LatentPosterior
from causalpima.inference.clusters.masked import masked_em
from causalpima.inference.findings import collect
from causalpima.inference.findings.collect import DrawBounds
from causalpima.inference.result import rebuild_result
from causalpima.inference.run import Run
from causalpima.inference.starts import train_batched
from causalpima.inference.training import clustering as masked_clusters
from causalpima.inference.training.config import FitConfig

N_PARTS = 12
"""The rows are dealt out to so many tests; each names all of its rows that fail."""


def test_how_many_pairs_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    n_levels, legal, illegal = sum(map(len, LEVELS.values())), legal_pairs(), illegal_pairs()
    with capsys.disabled():
        print(
            f"\ncomponents: {len(LEVELS)} settings with {n_levels} values; {len(legal)} legal pairs in {len(rows())} "
            f"rows that are trained, {len(illegal)} pairs that are refused"
        )
    sizes = [len(levels) for levels in LEVELS.values()]
    assert len(legal) + len(illegal) == (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2


def test_the_rows_are_legal_and_hold_every_legal_pair() -> None:
    held = {pair for row in rows() for pair in pairs_of(row)}
    assert held == set(legal_pairs())
    assert [row_name(row) for row in rows() if refusal(row) is not None] == []


def test_every_value_is_in_some_legal_row() -> None:
    levels = {(factor, value) for factor, values in LEVELS.items() for value in values}
    assert {level for row in rows() for level in row.items()} == levels


@pytest.mark.parametrize("pair", illegal_pairs(), ids=lambda pair: row_name(dict(sorted(pair))))
def test_other_pairs_are_refused_by_name_and_with_a_reason(pair: frozenset[tuple[str, str]]) -> None:
    message = illegal_pairs()[pair]
    name, _, rest = message.partition(": ")
    assert is_setting(name), message
    assert rest.startswith("expected ")
    assert ", got " in rest
    assert "\n" not in message
    assert reason_of(rest), message


def is_setting(name: str) -> bool:
    """Whether a message begins with the name of a setting, which the configuration or `fit` has."""
    first = name.partition(".")[0]
    return first == "restart_mode" or first in {field.name for field in dataclasses.fields(FitConfig)}


def reason_of(text: str) -> bool:
    """Whether a message says why, or what to do instead."""
    return any(mark in text for mark in ("; ", ", which ", " since "))


def trained(row: Row) -> Sequence[Run]:
    """The fits of a row, two if its starts are batched."""
    config, data = config_of(row), samples_of(row)
    n_starts = 1 if row["starts"] == "one" else 2
    runs = [Run(data, dataclasses.replace(config, restart=number)) for number in range(n_starts)]
    if n_starts > 1:
        train_batched(runs)
    for run in runs:
        run.train()
    return runs


def check(run: Run) -> None:
    """The fit ends, all that it learned is finite, and what it found hangs together."""
    assert run.state.diverged is None, run.state.diverged
    learned, kept = run.state.modules.named_parameters(), run.state.modules.named_buffers()
    assert [name for name, value in learned if not bool(torch.isfinite(value).all())] == []
    assert [name for name, value in kept if bool(value.isnan().any())] == []  # infinity: nothing before it, on purpose
    assert all(np.isfinite(record["objective"]) for record in run.state.history)
    result = run.finish()
    assert result.status in ("ok", "collapsed"), result.summary
    assert result.arrays is not None
    np.testing.assert_allclose(result.arrays.responsibilities.sum(1), 1, atol=1e-6)
    assert np.exp(result.arrays.graph.log_joint).sum() == pytest.approx(1, abs=1e-6)
    assert np.isfinite(result.arrays.draws.latent).all()
    again = rebuild_result(result)
    ours, theirs = run.state.model.state_dict(), again.model.state_dict()
    assert [name for name, value in ours.items() if not torch.equal(value, theirs[name])] == []


@pytest.mark.parametrize("part", range(N_PARTS))
def test_legal_pairs_train(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masked_clusters, "masked_em", partial(masked_em, n_starts=2))  # 25 find better ones, no others
    monkeypatch.setattr(collect, "DrawBounds", partial(DrawBounds, draws=8, predictive_elements=2**12))
    failed = []
    for row in rows()[part::N_PARTS]:
        try:
            for run in trained(row):
                check(run)
        except Exception:
            failed.append(f"{row_name(row)}\n{traceback.format_exc()}")
    assert not failed, f"{len(failed)} rows fail:\n" + "\n\n".join(failed)


class Broken(Fusion):
    """A fusion whose means are no numbers."""

    def forward(self, experts: Sequence[GaussianParameters], present: Sequence[torch.Tensor | None]) -> LatentPosterior:
        """See `Fusion.forward`."""
        return GaussianParameters(experts[0].loc * torch.nan, experts[0].log_variance)


def test_a_component_that_does_not_train_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cast(dict[str, Any], FUSIONS), "poe", lambda *_: Broken())
    with pytest.raises((AssertionError, ValueError)):
        check(trained(DEFAULTS)[0])


def test_a_rule_that_is_missing_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {**DEFAULTS, "model.prior": "mixture", "model.graph": "empty"}
    assert refusal(row) is not None
    monkeypatch.setattr("causalpima.inference.training.limits.RULES", ())
    config_of(row)
