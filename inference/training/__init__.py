"""Training: state, loop, mixture updates, pretraining, schedules."""

from inference.training.fit import fit

__all__ = ["fit"]
