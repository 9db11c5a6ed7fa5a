"""Parameters of these tests live in their modules, as in training."""

from __future__ import annotations

from collections.abc import Iterator

import pyro
import pytest


@pytest.fixture(autouse=True)
def _own_parameters() -> Iterator[None]:
    with pyro.settings.context(module_local_params=True):
        yield
