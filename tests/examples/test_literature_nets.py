"""Networks of the literature: their numbers, and the random tables that can be learned."""

from __future__ import annotations

from itertools import combinations, product
from typing import get_args

import numpy as np
import pytest

from causalpima.examples.discrete_network import DiscreteNetwork
from causalpima.examples.literature_nets import NETS, Net, with_random_tables

NAMES: tuple[Net, ...] = get_args(Net)

#  Burglary  Earthquake     Pollution  Smoker      A   S        asia   smoke
#       \     /                 \      /            \ /          |     /   \
#        Alarm                   Cancer              E          tub  lung  bronc
#       /     \                 /      \            / \           \   /     |
#    John    Mary             Xray  Dyspnoea       O   R          either    |
#                                                   \ /           /    \    |
#                                                    T          xray    dysp
EDGES = {
    "earthquake": "Burglary>Alarm Earthquake>Alarm Alarm>JohnCalls Alarm>MaryCalls",
    "cancer": "Pollution>Cancer Smoker>Cancer Cancer>Xray Cancer>Dyspnoea",
    "survey": "A>E S>E E>O E>R O>T R>T",
    "asia": "asia>tub tub>either smoke>lung smoke>bronc lung>either either>xray either>dysp bronc>dysp",
}


@pytest.mark.parametrize("net", NAMES)
def test_edges_are_those_of_the_literature(net: Net) -> None:
    names = list(NETS[net].levels)
    found = {f"{names[i]}>{names[j]}" for i, j in np.argwhere(NETS[net].adjacency)}
    assert found == set(EDGES[net].split())


def marginal(network: DiscreteNetwork, **levels: str) -> float:
    """p of a level of every named node."""
    joint = network.joint
    index = tuple(
        network.levels[name].index(levels[name]) if name in levels else slice(None) for name in network.levels
    )
    return float(joint[index].sum())


def test_asia_has_the_marginals_that_its_authors_print() -> None:
    """Lauritzen and Spiegelhalter, section 8: probabilities before any evidence."""
    published = {"tub": 0.0104, "lung": 0.055, "bronc": 0.45, "either": 0.0648, "xray": 0.1103, "dysp": 0.4360}
    for node, value in published.items():
        assert marginal(NETS["asia"], **{node: "yes"}) == pytest.approx(value, abs=5e-5)


def test_other_networks_agree_with_sums_by_hand() -> None:
    alarm = 0.01 * 0.02 * 0.95 + 0.01 * 0.98 * 0.94 + 0.99 * 0.02 * 0.29 + 0.99 * 0.98 * 0.001
    assert marginal(NETS["earthquake"], Alarm="True") == pytest.approx(alarm)
    assert marginal(NETS["earthquake"], JohnCalls="True") == pytest.approx(0.9 * alarm + 0.05 * (1 - alarm))
    cancer = 0.9 * 0.3 * 0.03 + 0.9 * 0.7 * 0.001 + 0.1 * 0.3 * 0.05 + 0.1 * 0.7 * 0.02
    assert marginal(NETS["cancer"], Cancer="True") == pytest.approx(cancer)
    high = 0.6 * (0.3 * 0.75 + 0.5 * 0.72 + 0.2 * 0.88) + 0.4 * (0.3 * 0.64 + 0.5 * 0.7 + 0.2 * 0.9)
    assert marginal(NETS["survey"], E="high") == pytest.approx(high)
    self_employed = 0.04 * high + 0.08 * (1 - high)
    assert marginal(NETS["survey"], O="self") == pytest.approx(self_employed)


@pytest.mark.parametrize(("net", "seed"), list(product(NAMES, range(3))))
def test_random_tables_keep_the_graph_and_every_parent_matters(net: Net, seed: int) -> None:
    network = with_random_tables(NETS[net], seed)
    np.testing.assert_array_equal(network.adjacency, NETS[net].adjacency)
    assert network.levels == NETS[net].levels
    for node, table in network.tables.items():
        assert table.min() >= 0.4 / table.shape[-1]
        for axis in range(len(network.parents[node])):
            for rows in np.moveaxis(table, axis, -2).reshape(-1, table.shape[axis], table.shape[-1]):
                assert max(np.abs(a - b).sum() / 2 for a, b in combinations(rows, 2)) >= 0.25


def edge_information(network: DiscreteNetwork, cause: str, effect: str) -> float:
    """I(cause; effect | other parents of the effect), nats."""
    names = list(network.levels)
    kept = [names.index(name) for name in (*network.parents[effect], effect)]
    joint = network.joint.sum(tuple(set(range(len(names))) - set(kept)), keepdims=True)
    a, b = names.index(cause), names.index(effect)
    of_cause, of_effect = joint.sum(b, keepdims=True), joint.sum(a, keepdims=True)
    ratio = joint * joint.sum((a, b), keepdims=True) / (of_cause * of_effect)
    return float((joint * np.log(ratio)).sum())


@pytest.mark.parametrize("net", NAMES)
def test_edges_of_random_tables_show_in_four_thousand_samples(net: Net) -> None:
    """The gain of log-likelihood, n I, is far above what BIC charges for the edge."""
    network = with_random_tables(NETS[net])
    for effect in network.levels:
        for cause in network.parents[effect]:
            table = network.tables[effect].size
            n_parameters = table * (1 - 1 / len(network.levels[effect])) * (1 - 1 / len(network.levels[cause]))
            assert 4096 * edge_information(network, cause, effect) > 3 * 0.5 * n_parameters * np.log(4096)


def test_edges_of_own_tables_do_not_all_show() -> None:
    gain = 4096 * np.array(
        [edge_information(NETS["survey"], "E", "O"), edge_information(NETS["cancer"], "Smoker", "Cancer")]
    )
    assert gain.min() < 20


def test_tables_have_seeds_of_their_own() -> None:
    first, again, other = (with_random_tables(NETS["cancer"], seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.joint, again.joint)
    assert not np.allclose(first.joint, other.joint)
    assert not np.allclose(first.tables["Xray"], first.tables["Dyspnoea"])
    assert not np.allclose(first.joint, with_random_tables(NETS["earthquake"]).joint)


def test_tables_that_cannot_be_drawn_are_refused() -> None:
    parents = tuple("abcdef")
    levels = dict.fromkeys((*parents, "z"), ("0", "1"))
    tables = {name: np.array([0.5, 0.5]) for name in parents} | {"z": np.full((2,) * 7, 0.5)}
    network = DiscreteNetwork(levels, dict.fromkeys(parents, ()) | {"z": parents}, tables)
    with pytest.raises(
        ValueError, match=r"tables: expected that a table \(2, 2, 2, 2, 2, 2, 2\) can be drawn, got none"
    ):
        with_random_tables(network)
