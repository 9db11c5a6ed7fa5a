"""Members of equivalence classes, against the list of all graphs."""

from __future__ import annotations

import numpy as np
import pytest

from causalpima.inference.graphs.dags import all_dags, class_members, cpdag


@pytest.mark.parametrize("n_nodes", [1, 2, 3, 4])
def test_members_are_the_graphs_with_that_cpdag(n_nodes: int) -> None:
    dags = all_dags(n_nodes)
    classes: dict[bytes, list[np.ndarray]] = {}
    for dag in dags:
        classes.setdefault(cpdag(dag).tobytes(), []).append(dag)
    for key, expected in classes.items():
        graph = np.frombuffer(key, dtype=np.int64).reshape(n_nodes, n_nodes)
        found = class_members(graph)
        assert sorted(map(bytes, found)) == sorted(dag.astype(np.int8).tobytes() for dag in expected)


def test_what_is_known_leaves_the_members_that_agree() -> None:
    """0 - 1 - 2 with 1 -> 2 known: 0 -> 1 -> 2 and 0 <- 1 -> 2, but no new v-structure."""
    known = np.array([[0, 1, 0], [1, 0, 1], [0, 0, 0]])
    found = [member.tolist() for member in class_members(known)]
    assert len(found) == 2
    assert [[0, 1, 0], [0, 0, 1], [0, 0, 0]] in found
    assert [[0, 0, 0], [1, 0, 1], [0, 0, 0]] in found


def test_graphs_that_stand_for_no_class_are_refused() -> None:
    square = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    with pytest.raises(ValueError, match="got one without any"):
        class_members(square)
    with pytest.raises(ValueError, match="at most 5040 graphs"):
        class_members(1 - np.eye(8, dtype=int))
