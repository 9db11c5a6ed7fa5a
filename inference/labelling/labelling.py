"""Which cluster is which joint outcome of the nodes, as side information tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

__all__ = ["Clusters", "Labeller", "Labelling", "Source"]

Source = Literal["none", "mask", "names", "labels", "environments", "read_outs", "independence"]


class Clusters(NamedTuple):
    """What a labeller sees of the clusters that were read out.

    Attributes:
        responsibilities: Of the clusters, `[n, C]`, on the training samples.
        embedding: Mean of q(Z|X) of the same samples, `[n, J]`.
    """

    responsibilities: np.ndarray
    embedding: np.ndarray


@dataclass(frozen=True)
class Labelling:
    """A bijection of clusters and cells, and where it comes from.

    Attributes:
        permutation: Cluster c is cell `permutation[c]`, row-major over the nodes' outcomes, `[C]`.
        source: What told it.
        named_nodes: Names of the nodes that have a meaning by it.
        details: What the source has to say of it, as plain values for `summary.json`.
        joint: p(N) over the cells `[C_1, ..., C_L]`, where the source knows better than the mass of all samples.
        environment_joint: p(N | e) of the environments that intervene, `[C_1, ..., C_L]` each, where they tell `joint`.
        agreement: How well cluster c agrees with being cell k, `[C, C]`, where the source can say; what a mask leaves
            open is matched by it.
    """

    permutation: np.ndarray
    source: Source = "none"
    named_nodes: Sequence[str] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    joint: np.ndarray | None = None
    agreement: np.ndarray | None = None
    environment_joint: Mapping[str, np.ndarray] = field(default_factory=dict)

    def to_plain(self) -> dict[str, Any]:
        """All but the permutation, which is no more needed once the cells bear their numbers."""
        plain = {"source": self.source, "named_nodes": list(self.named_nodes), "details": dict(self.details)}
        if self.joint is None:
            return plain
        plain["joint"] = self.joint.tolist()
        told = {name: joint.tolist() for name, joint in self.environment_joint.items()}
        return {**plain, "environment_joint": told} if told else plain


Labeller = Callable[[Clusters], Labelling]
