"""A read-out that keeps to labels: an outcome that was observed is data, not an opinion of the clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np
from scipy.special import softmax

from inference.clusters.read_out import ReadOut

__all__ = ["centred", "keep_allowed", "observed_nodes", "split_by_outcomes"]

_LOST = 1e-3


def observed_nodes(allowed: np.ndarray, outcomes: Sequence[int]) -> tuple[int, ...]:
    """Nodes, by position, whose outcome is told of every sample.

    Args:
        allowed: Cells that the labels of each sample leave possible, bool `[n, C]`.
        outcomes: Number of outcomes of each node.
    """
    axes = range(1, len(outcomes) + 1)
    cells = allowed.reshape(-1, *outcomes)
    left = [cells.any(axis=tuple(axis for axis in axes if axis != node + 1)).sum(1) for node in range(len(outcomes))]
    return tuple(node for node, counts in enumerate(left) if (counts == 1).all())


def keep_allowed(found: ReadOut, allowed: np.ndarray, embedding: np.ndarray) -> ReadOut:
    """The same components, with no sample outside of the cells that its labels allow.

    A sample of which less than a thousandth is in allowed cells goes to the nearest of their components, in the metric
    of the pooled scatter within components. Cells without a component, which labels may fill, get one.

    Args:
        found: What was read out.
        allowed: Bool `[n, C]`.
        embedding: `[n, J]`.
    """
    cell = np.concatenate([found.component_cell, np.setdiff1d(np.arange(found.n_cells), found.component_cell)])
    r = np.pad(found.responsibilities, ((0, 0), (0, len(cell) - found.size))) * allowed[:, cell]
    mass = r.sum(1, keepdims=True)
    lost = mass[:, 0] < _LOST
    kept = np.where(lost[:, None], 0.0, r / np.where(mass > 0, mass, 1.0))
    if lost.any():
        kept[lost] = _nearest(embedding, kept, allowed[lost][:, cell], lost)
    return replace(found, responsibilities=kept, component_cell=cell)


def _nearest(embedding: np.ndarray, r: np.ndarray, allowed: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """Responsibilities of the samples that are lost, `[m, K]`; spread evenly where no allowed component has a place."""
    count = r.sum(0)
    there = count > 0
    means = (r.T @ embedding) / np.where(there, count, 1.0)[:, None]
    scatter = np.cov(embedding.T, bias=True).reshape(embedding.shape[1], -1)
    if (~lost).sum() > embedding.shape[1]:
        residual = embedding[~lost] - r[~lost] @ means
        scatter = residual.T @ residual / len(residual) + 1e-6 * np.trace(scatter) * np.eye(len(scatter))
    away = embedding[lost][:, None, :] - means
    squares = np.einsum("nkj,nkj->nk", away @ np.linalg.pinv(scatter), away)
    placed = allowed & there
    logits = np.where(placed, -0.5 * squares, -np.inf)
    even = allowed / allowed.sum(1, keepdims=True)
    has_place = placed.any(1, keepdims=True)
    return np.where(has_place, softmax(np.where(has_place, logits, 0.0), axis=1), even)


def centred(embedding: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The embedding less the mean of each outcome, plus the mean of all.

    Args:
        embedding: `[n, J]`.
        codes: Outcome of each sample, `[n]`.
    """
    _, group, count = np.unique(codes, return_inverse=True, return_counts=True)
    means = np.zeros((len(count), embedding.shape[1]))
    np.add.at(means, group, embedding)
    found: np.ndarray = embedding - (means / count[:, None])[group] + embedding.mean(0)
    return found


def split_by_outcomes(hidden: ReadOut, codes: np.ndarray, outcomes: Sequence[int], observed: Sequence[int]) -> ReadOut:
    """Cells of all nodes from clusters of the nodes that are not observed: each is split by the observed outcomes.

    Args:
        hidden: Cells row-major over the outcomes of the other nodes, in their order.
        codes: Outcomes of the observed nodes, `[n, observed]`.
        outcomes: Number of outcomes of each node.
        observed: Positions of the observed nodes.
    """
    rest = [node for node in range(len(outcomes)) if node not in observed]
    n_joint = prod(outcomes[node] for node in observed)
    cells = np.arange(prod(outcomes)).reshape(outcomes).transpose([*rest, *observed]).reshape(-1, n_joint)
    own = np.zeros(len(codes), dtype=int)
    for node, code in zip(observed, codes.T, strict=True):
        own = own * outcomes[node] + code
    r = hidden.responsibilities[:, :, None] * (own[:, None] == np.arange(n_joint))[:, None, :]
    return ReadOut(r.reshape(len(r), -1), cells[hidden.component_cell].reshape(-1), cells.size, hidden.candidates)
