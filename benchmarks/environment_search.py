"""How often the search over labellings, graphs and targets is right, on simulated clusters of random networks.

    python benchmarks/environment_search.py --samples 4096 --confusion 0.04 --draws 10

Three binary nodes in a chain, fork, collider or edge; every p(node = 1 | parents) uniform in [.1, .9], parents with an
effect above .25; clusters numbered at random, in pairs that overlap; per node one environment in which it is 1 with a
probability drawn from [.3, .7] (or always the same outcome, --hard), whatever its parents.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.stats import norm

from causalpima.inference.clusters.environments import Environments
from causalpima.inference.clusters.labels import Clusters, node_outcomes, partition_codes

NODES = {"h": 2, "r": 2, "s": 2}
TREES: dict[str, dict[int, tuple[int, ...]]] = {
    "chain": {1: (0,), 2: (1,)},
    "fork": {0: (1,), 2: (1,)},
    "collider": {2: (0, 1)},
    "edge": {1: (0,)},
}
LEAST_EFFECT = 0.25


def table(rng: np.random.Generator, parents: tuple[int, ...]) -> np.ndarray:
    """p(node = 1 | parents), with size 1 along the nodes that are none."""
    while True:
        p = rng.uniform(0.1, 0.9, [2 if node in parents else 1 for node in range(3)])
        if all(np.abs(np.diff(p, axis=node)).max() > LEAST_EFFECT for node in parents):
            return p


def joint(tables: list[np.ndarray]) -> np.ndarray:
    """p(N), `[2, 2, 2]`."""
    factors = [np.concatenate([1 - one, one], axis=node) for node, one in enumerate(tables)]
    found: np.ndarray = np.prod(np.broadcast_arrays(*factors), axis=0)
    return found


def posterior(cluster: np.ndarray, confusion: float, rng: np.random.Generator) -> np.ndarray:
    """Responsibilities under which the best classifier takes this share for the other one of the pair."""
    if not confusion:
        return np.eye(8)[cluster]
    distance = -norm.ppf(confusion)
    x = rng.standard_normal(len(cluster)) + np.where(cluster % 2, distance, -distance)
    density = np.stack([norm.pdf(x + distance), norm.pdf(x - distance)], axis=1)[:, np.arange(8) % 2]
    share = np.bincount(cluster, minlength=8) / len(cluster)
    weight = np.where(cluster[:, None] // 2 == np.arange(8) // 2, density * share, 0.0)
    found: np.ndarray = weight / weight.sum(1, keepdims=True)
    return found


def draw(tree: str, seed: int, options: argparse.Namespace) -> tuple[bool, bool, bool, bool]:
    """Whether the labelling is right, and the graph with it; whether one remains; whether all named nodes are right."""
    rng = np.random.default_rng([seed, list(TREES).index(tree)])
    parents = [TREES[tree].get(node, ()) for node in range(3)]
    tables = [table(rng, those) for those in parents]
    dos = [float(rng.integers(2)) if options.hard else rng.uniform(0.3, 0.7) for _ in range(options.environments)]
    cut = [[*tables[:node], np.full((1, 1, 1), p), *tables[node + 1 :]] for node, p in enumerate(dos)]
    joints = [joint(each) for each in (tables, *cut)]
    number = rng.permutation(8)
    cluster = number[np.concatenate([rng.choice(8, options.samples, p=each.ravel()) for each in joints])]
    codes = np.repeat(np.arange(len(joints)), options.samples)
    names = ("none", *(f"do_{name}" for name in list(NODES)[: len(dos)]))
    targets = {name: name.removeprefix("do_") for name in names[1:]}
    responsibilities = posterior(cluster, options.confusion, rng)
    found = Environments(NODES, codes, names, targets).labelling(Clusters(responsibilities, np.zeros((len(codes), 1))))
    mine, true = (partition_codes(node_outcomes(x, (2, 2, 2))) for x in (found.permutation, np.argsort(number)))
    same = (mine == true).all(1)
    graph = [[int(cause in parents[effect]) for effect in range(3)] for cause in range(3)]
    named = all(same[list(NODES).index(name)] for name in found.named_nodes)
    return (
        bool(same.all()),
        bool(same.all()) and found.details["graph"] == graph,
        found.details["n_remaining"] == 1,
        named,
    )


def main() -> None:
    """Print one line of shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=4096, help="samples per environment")
    parser.add_argument("--confusion", type=float, default=0.0)
    parser.add_argument("--environments", type=int, default=3, choices=(1, 2, 3))
    parser.add_argument("--draws", type=int, default=10, help="networks per graph")
    parser.add_argument("--hard", action="store_true")
    options = parser.parse_args()
    rows = np.array([draw(tree, seed, options) for tree in TREES for seed in range(options.draws)])
    right, graph, settled, named = rows.mean(0)
    sure = rows[rows[:, 2], 0].mean() if rows[:, 2].any() else float("nan")
    print(
        f"{len(rows)} draws: labelling right {right:.3f}, graph right {graph:.3f}, settled {settled:.3f}, right where "
        f"settled {sure:.3f}, all named nodes right {named:.3f}"
    )


if __name__ == "__main__":
    main()
