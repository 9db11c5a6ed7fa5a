"""Embeddings of several starts of the pretraining."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tiny_fits import settings, tiny_samples

from causalpima.inference.explore import pretrained_embeddings
from causalpima.inference.run import Run


def test_starts_differ_and_are_those_of_runs() -> None:
    first, second = pretrained_embeddings(tiny_samples(), settings(), 2)
    assert first.training.shape == second.training.shape
    assert not np.allclose(first.training, second.training)
    alone = pretrained_embeddings(tiny_samples(), dataclasses.replace(settings(), restart=0), 1)[0]
    assert np.array_equal(first.training, alone.training)
    assert np.array_equal(first.held_out, alone.held_out)


def test_held_out_samples_are_those_of_the_split() -> None:
    found = pretrained_embeddings(tiny_samples(), settings(), 1)[0]
    split = Run(tiny_samples(), settings()).split
    assert len(found.training) == (split == "train").sum()
    assert len(found.held_out) == (split != "train").sum() > 0
    assert found.training.dtype == np.float64


def test_every_start_is_told() -> None:
    told: list[None] = []
    pretrained_embeddings(tiny_samples(), settings(), 2, done=lambda: told.append(None))
    assert len(told) == 2


def test_without_pretraining_there_is_nothing_to_explore() -> None:
    config = settings()
    config = dataclasses.replace(config, pretraining=dataclasses.replace(config.pretraining, kind="none"))
    with pytest.raises(ValueError, match=r"pretraining.epochs: expected at least 1, got 0"):
        pretrained_embeddings(tiny_samples(), config, 1)
