"""Training: state, loop, mixture updates, pretraining, schedules."""

from inference.training.components import Components
from inference.training.fit import fit

__all__ = ["Components", "fit"]
