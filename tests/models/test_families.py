"""Tables of all families against brute force over cells."""

from __future__ import annotations

from itertools import product

import numpy as np
import torch

from causalpima.inference.graphs.dags import all_dags
from causalpima.models.dag import FamilyTables

OUTCOMES = (2, 3, 2)


def test_joint_of_a_graph_is_the_product_of_its_tables() -> None:
    families = FamilyTables(OUTCOMES)
    tables = [torch.distributions.Dirichlet(a).sample() for a in families.concentration(3.0)]
    dags = torch.from_numpy(all_dags(3)).long()
    joints = families.log_joints([t.log() for t in tables], families.members(dags)).exp().reshape(-1, *OUTCOMES)
    assert torch.allclose(joints.sum((1, 2, 3)), torch.ones(25))
    # 0 -> 1 <- 2: node 1 has both parents, and is independent of neither; nodes 0 and 2 are independent.
    collider = torch.tensor([[0, 1, 0], [0, 0, 0], [0, 1, 0]])
    at = int((dags == collider).all((1, 2)).nonzero())
    pair = joints[at].sum(1)
    assert torch.allclose(pair, pair.sum(1, keepdim=True) * pair.sum(0))
    assert not torch.allclose(joints[at].sum(2), joints[at].sum((1, 2))[:, None] * joints[at].sum((0, 2)))


def test_counts_are_sums_over_the_cells_of_each_family() -> None:
    families = FamilyTables(OUTCOMES)
    count = torch.rand(12)
    table = count.reshape(OUTCOMES)
    found = families.counts(count)[1]
    rows = [
        table.sum((0, 2)),
        *table.sum(2),
        *table.sum(0).T,
        *(table[i, :, j] for i, j in product(range(2), range(2))),
    ]
    assert torch.allclose(found, torch.stack(rows))


def test_prior_is_bdeu() -> None:
    families = FamilyTables(OUTCOMES)
    for node, part in enumerate(families.concentration(5.0)):
        sums = families.family_sums([p.sum(-1) for p in families.concentration(5.0)])[node]
        assert part.shape[1] == OUTCOMES[node]
        assert np.allclose(sums, 5.0)  # the equivalent sample size of every family
