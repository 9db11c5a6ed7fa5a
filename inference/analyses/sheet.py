"""What a contact sheet shows: of every cluster and modality, the medoid, samples next to it, and less typical ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.findings.arrays import ModalityArrays

__all__ = [
    "EXAMPLES",
    "NEAREST",
    "RANDOM",
    "Role",
    "Sheet",
    "make_sheet",
    "nearest_to_median",
]


# The samples that show what a cluster looks like: its medoid, and those nearest to it.


def nearest_to_median(latent_loc: np.ndarray, members: np.ndarray, present: np.ndarray, count: int) -> np.ndarray:
    """Members of a cluster in the order of their distance to its median, nearest first, at most `count`.

    The median is that of every latent dimension over all members; distances are in units of the cluster's median
    absolute deviation of each dimension. The first one is the medoid of the members that have the modality.

    Args:
        latent_loc: Mean of q(Z|X), `[n, J]`.
        members: Positions of the samples of the cluster.
        present: Which samples have the modality, bool `[n]`.
        count: How many are wanted.
    """
    if not len(members):
        return members
    points = latent_loc[members]
    median = np.median(points, axis=0)
    spread = np.median(np.abs(points - median), axis=0)
    distance = np.square((points - median) / np.where(spread > 0, spread, 1.0)).sum(axis=1)
    order = members[np.argsort(distance, kind="stable")]
    return order[present[order]][:count]


NEAREST, RANDOM = 5, 3
"""Samples shown of each cluster: the medoid and four next to it, and drawn ones."""
EXAMPLES = NEAREST + RANDOM + 1
"""All of them, with the least certain one."""

Role = Literal["nearest", "random", "least certain"]


@dataclass(frozen=True)
class Sheet:
    """A contact sheet of C clusters.

    Attributes:
        title: What it is of.
        sizes: Samples of every cluster.
        called: What every cluster is called so far; empty: nothing.
        modalities: Per modality, how its values are shown; `exemplars` are the medoids, NaN where there is none.
        examples: Per modality and cluster, measured samples `[m, *shape]`, the medoid first; NaN where not measured.
        roles: Per modality and cluster, why each of these samples is shown.
        certainty: Per cluster, the mean and the least of q of its samples being in it; NaN where there are none.
    """

    title: str
    sizes: tuple[int, ...]
    called: tuple[str, ...]
    modalities: Mapping[str, ModalityArrays]
    examples: Mapping[str, Sequence[np.ndarray]]
    roles: Mapping[str, Sequence[Sequence[Role]]]
    certainty: tuple[tuple[float, float], ...]


class Scaled(Protocol):
    """What says on which scale values are modelled: a `Standardisation`, or the `ModalityArrays` of a fit."""

    @property
    def transform(self) -> str:
        """`identity`, `log` or `asinh`."""

    @property
    def knee(self) -> float:
        """Where `asinh` turns from linear to logarithmic."""


def make_sheet(
    data: MultimodalData,
    scales: Mapping[str, Scaled],
    clusters: tuple[np.ndarray, np.ndarray],
    called: Sequence[str] = (),
) -> Sheet:
    """Choose and read the samples of a contact sheet.

    Args:
        data: The samples.
        scales: Per modality, the scale that its values are modelled on.
        clusters: q(N|X) `[n, C]` and the mean of q(Z|X) `[n, J]`.
        called: What every cluster is called so far.
    """
    r, loc = clusters
    best = r.argmax(axis=1)
    members = [np.flatnonzero(best == cluster) for cluster in range(r.shape[1])]
    certainty = r.max(axis=1)
    chosen = {name: [_chosen(loc, certainty, rows, data.present[name]) for rows in members] for name in data.modalities}
    examples = {name: [_values(data, name, rows) for rows, _ in found] for name, found in chosen.items()}
    return Sheet(
        title=data.name,
        sizes=tuple(map(len, members)),
        called=tuple(called) or ("",) * len(members),
        modalities={name: _shown(data, scales[name], name, found) for name, found in examples.items()},
        examples=examples,
        roles={name: [roles for _, roles in found] for name, found in chosen.items()},
        certainty=tuple(_certainty(certainty[rows]) for rows in members),
    )


def _chosen(
    loc: np.ndarray, certainty: np.ndarray, members: np.ndarray, present: np.ndarray
) -> tuple[np.ndarray, tuple[Role, ...]]:
    """Samples of a cluster that have a modality, and why each is shown.

    Medoid and neighbours of a merged cluster are all of the larger part: drawn members, alike in every modality as far
    as they have it, and the least certain one show the rest.
    """
    nearest = nearest_to_median(loc, members, present, NEAREST)
    others = np.random.default_rng(0).permutation(members)
    others = others[present[others] & ~np.isin(others, nearest)]
    least = others[np.argsort(certainty[others], kind="stable")[:1]]
    drawn = others[~np.isin(others, least)][:RANDOM]
    parts: tuple[tuple[Role, np.ndarray], ...] = (("nearest", nearest), ("random", drawn), ("least certain", least))
    return np.concatenate([rows for _, rows in parts]), tuple(role for role, rows in parts for _ in rows)


def _certainty(of_members: np.ndarray) -> tuple[float, float]:
    return (float(of_members.mean()), float(of_members.min())) if len(of_members) else (np.nan, np.nan)


def _values(data: MultimodalData, name: str, rows: np.ndarray) -> np.ndarray:
    """Measured values of some samples; read one by one, for they may be on disk."""
    shape = data.modalities[name].shape[1:]
    read = [
        np.where(data.measured_rows(name, slice(i, i + 1))[0], data.modalities[name][i : i + 1][0], np.nan)
        for i in map(int, rows)
    ]
    return np.stack(read) if read else np.empty((0, *shape), dtype=np.float32)


def _shown(data: MultimodalData, scale: Scaled, name: str, examples: Sequence[np.ndarray]) -> ModalityArrays:
    blank = np.full(data.modalities[name].shape[1:], np.nan)
    medoids = np.stack([found[0] if len(found) else blank for found in examples])
    return ModalityArrays(
        kind=data.kinds[name],
        exemplars=medoids,
        decoded=medoids,
        variance_training=None,
        variance=None,
        unit=data.units.get(name, ""),
        axis=data.axis(name) if data.kinds[name] == "curve" else None,
        transform=scale.transform,
        knee=scale.knee,
    )
