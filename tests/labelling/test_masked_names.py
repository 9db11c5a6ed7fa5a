"""Names that contradict a mask, against which cells a modality tells apart."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from causalpima.inference.clusters.names import check_mask

NODES = ("phase", "grain")
STRESS_SEES_GRAIN = {"image": (0, 1), "stress": (1,)}


def test_clusters_that_are_alike_in_a_modality_need_one_name() -> None:
    # Clusters 0 and 2 are cells (0, 0) and (1, 0); 2 is to become (1, 1).
    with pytest.raises(ValueError, match=r"^stress looks alike in clusters 0 and 2; give them one name of grain$"):
        check_mask(np.array([0, 1, 3, 2]), (2, 2), STRESS_SEES_GRAIN, NODES)


@pytest.mark.parametrize("permutation", [[0, 1, 2, 3], [2, 3, 0, 1], [1, 0, 3, 2], [3, 2, 1, 0]])
def test_outcomes_may_be_called_anything(permutation: list[int]) -> None:
    check_mask(np.array(permutation), (2, 2), STRESS_SEES_GRAIN, NODES)


def test_what_passes_is_what_keeps_the_levels() -> None:
    grain = np.array([0, 1, 0, 1])
    for permutation in map(np.array, permutations(range(4))):
        keeps = len({(int(grain[c]), int(grain[permutation[c]])) for c in range(4)}) == 2
        if keeps:
            check_mask(permutation, (2, 2), STRESS_SEES_GRAIN, NODES)
        else:
            with pytest.raises(ValueError, match=r"^stress looks alike in clusters"):
                check_mask(permutation, (2, 2), STRESS_SEES_GRAIN, NODES)


def test_without_a_mask_all_names_fit() -> None:
    for permutation in permutations(range(4)):
        check_mask(np.array(permutation), (2, 2), {"image": (0, 1)}, NODES)
