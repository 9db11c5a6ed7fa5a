"""The named terms of a bound."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from causalpima.inference.objectives.closed_form import ELBOTerms


def terms() -> ELBOTerms:
    """Powers of two, so that no two sums are alike."""
    parts = [2.0**power * torch.tensor([1.0, 100.0]) for power in range(6)]
    return ELBOTerms({"image": parts[0], "curve": parts[1]}, *parts[2:])


def test_total_is_the_sum_of_all() -> None:
    torch.testing.assert_close(terms().total, torch.tensor([63.0, 6300.0]))


def test_asking_for_the_total_changes_nothing() -> None:
    bound = terms()
    torch.testing.assert_close(bound.total, bound.total)
    torch.testing.assert_close(bound.reconstruction["image"], torch.tensor([1.0, 100.0]))


def test_sums_over_the_batch_are_named() -> None:
    assert terms().sums() == {
        "reconstruction/image": 101.0,
        "reconstruction/curve": 202.0,
        "cells": 404.0,
        "latent": 808.0,
        "cell_entropy": 1616.0,
        "latent_entropy": 3232.0,
    }


def test_sums_add_up_to_the_total() -> None:
    assert sum(terms().sums().values()) == pytest.approx(terms().total.sum().item())


def test_without_modalities_there_is_still_a_total() -> None:
    bound = dataclasses.replace(terms(), reconstruction={})
    torch.testing.assert_close(bound.total, torch.tensor([60.0, 6000.0]))
    assert "cells" in bound.sums()


def test_the_total_is_differentiable_and_sums_are_numbers() -> None:
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    bound = dataclasses.replace(terms(), cells=weight * 3)
    bound.total.sum().backward()
    torch.testing.assert_close(weight.grad, torch.tensor([3.0, 3.0]))
    assert isinstance(bound.sums()["cells"], float)


def test_terms_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        terms().cells = torch.zeros(2)  # type: ignore[misc]
