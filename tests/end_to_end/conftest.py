"""What tests of whole commands share."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from causalpima.inference import result as fit_result
from causalpima.inference.findings import collect
from causalpima.inference.findings.collect import DrawBounds


def _no_figures(*_: object, **__: object) -> list[Path]:
    return []


@pytest.fixture(scope="module")
def without_figures() -> object:
    """Leave the figures out and draw little: two thirds of the time of a small run. Whole runs have their own test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_result, "write_figures", _no_figures)
        patch.setattr(collect, "DrawBounds", partial(DrawBounds, draws=8, predictive_elements=2**16))
        yield
