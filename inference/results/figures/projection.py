"""The latent space as it can be drawn: at most 5000 points on at most two axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["LatentView", "view_latent"]

_MOST_POINTS = 5000


@dataclass(frozen=True)
class LatentView:
    """Points of the latent space on one or two axes.

    Attributes:
        points: Drawn locations `[m, d]`, d = 1 or 2, in random order so that no group lies on top.
        rows: Index of each drawn sample in the data set, `[m]`.
        centre: Point of the latent space that is the origin of the drawing, `[J]`.
        axes: Orthonormal directions `[J, d]`.
        labels: Label of each axis.
        note: What was left out of the drawing; empty where nothing was.
    """

    points: np.ndarray
    rows: np.ndarray
    centre: np.ndarray
    axes: np.ndarray
    labels: tuple[str, ...]
    note: str

    @property
    def marker_size(self) -> float:
        """Area of a marker in square points: large for few samples, small for many."""
        return float(np.clip(4000.0 / max(len(self.points), 1), 3.0, 22.0))

    def locations(self, loc: np.ndarray) -> np.ndarray:
        """Locations `[K, J]` on the axes, `[K, d]`."""
        return (loc - self.centre) @ self.axes

    def covariances(self, covariance: np.ndarray) -> np.ndarray:
        """Covariances `[K, J, J]` of the projected Gaussians, `V' S V`, `[K, d, d]`."""
        return self.axes.T @ covariance @ self.axes


def view_latent(latent: np.ndarray) -> LatentView:
    """Choose what to draw of the latent locations `[n, J]`.

    One and two dimensions are drawn as they are, more on the first two principal axes of the points, labelled with
    their share of the variance. Samples without a finite location are left out, and of more than 5000 a random 5000 are
    drawn.
    """
    rows, note = _drawn_rows(latent)
    drawn = np.asarray(latent[rows], dtype=float)
    n_dims = latent.shape[1]
    if n_dims <= 2 or len(rows) < 2:
        d = min(n_dims, 2)
        centre, axes = np.zeros(n_dims), np.eye(n_dims)[:, :d]
        labels = tuple(f"latent z{'₁₂'[i]}" for i in range(d)) if d > 1 else ("latent z",)
    else:
        centre, axes, labels = _principal_axes(drawn)
    return LatentView((drawn - centre) @ axes, rows, centre, axes, labels, note)


def _drawn_rows(latent: np.ndarray) -> tuple[np.ndarray, str]:
    rows = np.flatnonzero(np.isfinite(latent).all(axis=1))
    n_lost = len(latent) - len(rows)
    order = np.random.default_rng(0).permutation(len(rows))[:_MOST_POINTS]
    notes = [f"{n_lost} samples have no finite location."] if n_lost else []
    if len(order) < len(rows):
        notes.append(f"{len(order)} of {len(rows)} samples are drawn, chosen at random.")
    return rows[order], " ".join(notes)


def _principal_axes(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    centre = points.mean(axis=0)
    variance, vectors = np.linalg.eigh(np.cov(points, rowvar=False))
    axes = vectors[:, ::-1][:, :2]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])
    share = variance[::-1][:2] / max(variance.sum(), np.finfo(float).tiny)
    labels = tuple(f"principal axis {i + 1} of {len(variance)} ({share[i]:.0%})" for i in range(2))
    return centre, axes, labels
