"""The data sets that commands know by name."""

from __future__ import annotations

from collections.abc import Mapping

from examples.circle_environments import EXPERIMENTS as CIRCLES_ENVIRONMENTS
from examples.circle_views import EXPERIMENTS as CIRCLES_VIEWS
from examples.circles import EXPERIMENTS as CIRCLES
from examples.lattices import EXPERIMENTS as LATTICES
from examples.pendulum import EXPERIMENTS as PENDULUM
from examples.resin_coupons import EXPERIMENTS as RESIN_COUPONS
from examples.synthetic_nets import EXPERIMENTS as SYNTHETIC_NETS
from inference.training.experiment import Experiment

__all__ = ["DATASETS"]

DATASETS: Mapping[str, Experiment] = {
    **CIRCLES,
    **CIRCLES_VIEWS,
    **CIRCLES_ENVIRONMENTS,
    **PENDULUM,
    **SYNTHETIC_NETS,
    **LATTICES,
    **RESIN_COUPONS,
}
