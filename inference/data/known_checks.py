"""Checks of what is known beside the modalities: environments, and the distribution behind generated samples."""

from __future__ import annotations

import numpy as np

from inference.data.multimodal import MultimodalData

__all__ = ["check_environments", "check_truth"]


def check_environments(data: MultimodalData) -> None:
    """Refuse environments that do not fit the samples.

    Raises:
        ValueError: Codes that are not one per sample from 0 to the number of names, names that stand twice, or targets
            that are not known factors, one tuple per environment.
    """
    names = data.environment_names
    if data.environment is None:
        if names or data.environment_targets is not None:
            raise ValueError(f"environment: expected one code per sample, got none for the environments {names}")
        return
    _check_codes(data.environment, names, data.n_samples)
    if data.environment_targets is not None:
        _check_targets(data)


def _check_codes(codes: np.ndarray, names: tuple[str, ...], n_samples: int) -> None:
    if codes.dtype.kind not in "iu" or codes.shape != (n_samples,):
        raise ValueError(
            f"environment: expected one integer code per sample, [{n_samples}], got {codes.dtype} {codes.shape}"
        )
    if len(set(names)) != len(names):
        raise ValueError(f"environment_names: expected every name once, got {', '.join(names)}; rename the second")
    if codes.min() < 0 or codes.max() >= len(names):
        raise ValueError(
            f"environment: expected codes from 0 to {len(names) - 1}, one per name in environment_names, "
            f"got {codes.min()} to {codes.max()}"
        )


def _check_targets(data: MultimodalData) -> None:
    targets = data.environment_targets or ()
    if len(targets) != len(data.environment_names):
        raise ValueError(
            f"environment_targets: expected one tuple per environment, {len(data.environment_names)}, "
            f"got {len(targets)}; give () where nothing was intervened upon"
        )
    odd = sorted({name for group in targets for name in group} - set(data.factors))
    if odd:
        raise ValueError(f"environment_targets: expected names of factors, got {', '.join(odd)}")


def check_truth(data: MultimodalData) -> None:
    """Refuse a true distribution or graph that is none over the known factors.

    Raises:
        ValueError: A table of another shape, that is negative or does not sum to one, or an adjacency that is not
            `[L, L]` of 0 and 1.
    """
    shape = tuple(len(data.factor_levels[name]) for name in data.factors)
    joint, adjacency = data.true_joint, data.true_adjacency
    if joint is not None and joint.shape != shape:
        raise ValueError(f"true_joint: expected {shape}, one axis per factor, got {joint.shape}")
    if joint is not None and not ((joint >= 0).all() and np.isclose(joint.sum(), 1.0)):
        raise ValueError(f"true_joint: expected probabilities that sum to 1, got a sum of {joint.sum():g}")
    if adjacency is not None and adjacency.shape != (len(shape), len(shape)):
        raise ValueError(f"true_adjacency: expected {(len(shape), len(shape))}, got {adjacency.shape}")
    if adjacency is not None and not np.isin(adjacency, (0, 1)).all():
        raise ValueError("true_adjacency: expected 0 and 1, row = cause and column = effect, got other numbers")
