"""Schedules over the epochs of joint training or pretraining."""

from __future__ import annotations

__all__ = ["geometric", "linear", "warmup"]


def _progress(epoch: int, n_epochs: int) -> float:
    return 1.0 if n_epochs <= 1 else min(epoch / (n_epochs - 1), 1.0)


def geometric(start: float, end: float, epoch: int, n_epochs: int) -> float:
    """From `start` at epoch 0 to `end` at the last epoch, by a constant factor."""
    return float(start * (end / start) ** _progress(epoch, n_epochs))


def linear(start: float, end: float, epoch: int, n_epochs: int) -> float:
    """From `start` at epoch 0 to `end` at the last epoch, by a constant difference."""
    return start + (end - start) * _progress(epoch, n_epochs)


def warmup(epoch: int, n_epochs: int) -> float:
    """Weight that rises linearly to 1 over `n_epochs` epochs (1 from the start if there are none)."""
    return 1.0 if n_epochs == 0 else min((epoch + 1) / n_epochs, 1.0)
