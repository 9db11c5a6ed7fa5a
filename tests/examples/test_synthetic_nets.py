"""Networks that emit an image and a curve: what is seen where, and the ceiling."""

from __future__ import annotations

from itertools import product
from typing import get_args

import numpy as np
import pytest
from scipy.stats import chi2, norm

from causalpima.examples.literature_nets import NETS, Net
from causalpima.examples.synthetic_nets import Emission, Tables, curve_basis, net_of, synthetic_nets
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.validation import validate

NAMES: tuple[Net, ...] = get_args(Net)
N_NODES = {"earthquake": 5, "cancer": 5, "survey": 6, "asia": 8}


def emitted(data: MultimodalData, modality: str) -> np.ndarray:
    return np.stack([data.measurements[f"{modality}_{node}"] for node in data.factors], axis=1)


def blocks(data: MultimodalData) -> np.ndarray:
    """Mean of every block, back on the scale of levels, `[sample, node]`."""
    image = data.modalities["image"][..., 0]
    rows, columns = image.shape[1] // 5, image.shape[2] // 5
    means = image.reshape(len(image), rows, 5, columns, 5).mean(axis=(2, 4)).reshape(len(image), -1)
    return (means[:, : len(data.factors)] - 0.15) / 0.35


def coefficients(data: MultimodalData) -> np.ndarray:
    basis = curve_basis(len(data.factors))
    fitted: np.ndarray = np.linalg.lstsq(basis.T, data.modalities["curve"].T, rcond=None)[0].T
    return fitted


@pytest.mark.parametrize("net", NAMES)
def test_data_keep_the_contract(net: Net) -> None:
    data = synthetic_nets(60, seed=3, net=net)
    validate(data)
    assert data.name == f"synthetic_nets_{net}"
    assert data.modalities["image"].shape[1:] == {5: (10, 15, 1), 6: (10, 15, 1), 8: (15, 15, 1)}[N_NODES[net]]
    assert data.modalities["curve"].shape == (60, 12 * N_NODES[net])
    assert list(data.factors) == list(NETS[net].levels)
    np.testing.assert_array_equal(data.true_adjacency, NETS[net].adjacency)


def test_names_tell_what_was_asked_for() -> None:
    assert synthetic_nets(3, net="asia", tables="own", emission="mixed").name == "synthetic_nets_asia_own_mixed"


def test_seed_decides_and_first_samples_do_not_depend_on_their_number() -> None:
    few, many, other = (synthetic_nets(n, seed=seed) for n, seed in [(20, 1), (90, 1), (20, 2)])
    for name in ("image", "curve"):
        np.testing.assert_array_equal(few.modalities[name], many.modalities[name][:20])
        assert not np.array_equal(few.modalities[name], other.modalities[name])


@pytest.mark.parametrize("tables", ["own", "random"])
@pytest.mark.parametrize("net", NAMES)
def test_levels_are_as_frequent_as_the_network_says(net: Net, tables: Tables) -> None:
    data = synthetic_nets(5000, seed=4, net=net, tables=tables)
    joint = net_of(net, tables).joint
    np.testing.assert_array_equal(data.true_joint, joint)
    for axis, codes in enumerate(data.factors.values()):
        p = joint.sum(tuple(set(range(joint.ndim)) - {axis}))
        frequency = np.bincount(codes, minlength=len(p)) / 5000
        assert np.all(np.abs(frequency - p) < 4.5 * np.sqrt(p * (1 - p) / 5000))


def test_pairs_of_levels_are_as_frequent_as_the_network_says() -> None:
    data = synthetic_nets(5000, seed=5, net="cancer")
    counts = np.zeros((2, 2, 2, 2, 2))
    np.add.at(counts, tuple(data.factors.values()), 1)
    expected = 5000 * net_of("cancer").joint
    assert expected.min() > 2
    assert ((counts - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-4, df=31)


@pytest.mark.parametrize("modality", ["image", "curve"])
def test_emissions_are_normal_around_the_level(modality: str) -> None:
    data = synthetic_nets(4000, seed=6, net="survey")
    codes = np.stack(list(data.factors.values()), axis=1)
    standardised = (emitted(data, modality) - codes) / 0.22
    assert np.all(np.abs(standardised.mean(0)) < 4 / np.sqrt(4000))
    assert np.all(np.abs((standardised**2).mean(0) - 1) < 4 * np.sqrt(2 / 4000))
    off_diagonal = np.corrcoef(standardised.T) - np.eye(6)
    assert np.abs(off_diagonal).max() < 4 / np.sqrt(4000)


def test_one_block_and_one_coefficient_per_node() -> None:
    data = synthetic_nets(500, seed=7, net="asia")
    np.testing.assert_allclose(blocks(data), emitted(data, "image"), atol=6 * 0.03 / 5 / 0.35)
    assert not data.modalities["image"][:, 10:, 10:].std() > 0.04  # no ninth node
    gram = curve_basis(8) @ curve_basis(8).T
    error = 0.05 * np.sqrt(np.diag(np.linalg.inv(gram)))
    assert np.all(np.abs(coefficients(data) - emitted(data, "curve")) < 6 * error)


@pytest.mark.parametrize(("modality", "read"), [("image", blocks), ("curve", coefficients)])
def test_mixed_emissions_are_rotations_of_all_nodes(modality: str, read: object) -> None:
    data = synthetic_nets(500, seed=8, net="cancer", emission="mixed")
    assert callable(read)
    rotation = np.linalg.lstsq(emitted(data, modality), read(data), rcond=None)[0]
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(5), atol=0.03)
    assert (np.abs(rotation) > 0.05).mean() > 0.8


def test_the_two_modalities_are_mixed_differently() -> None:
    data = synthetic_nets(500, seed=8, net="cancer", emission="mixed")
    rotations = [
        np.linalg.lstsq(emitted(data, name), values, rcond=None)[0]
        for name, values in (("image", blocks(data)), ("curve", coefficients(data)))
    ]
    assert np.abs(rotations[0] - rotations[1]).max() > 0.2


@pytest.mark.parametrize(("tables", "emission"), [("own", "blocks"), ("random", "blocks"), ("random", "mixed")])
def test_ceiling_equals_bayes_rule_sample_by_sample(tables: Tables, emission: Emission) -> None:
    data = synthetic_nets(3000, seed=9, net="survey", tables=tables, emission=emission)
    joint = net_of("survey", tables).joint
    numbers = emitted(data, "image"), emitted(data, "curve")
    densities = [
        joint[cell] * np.prod([norm.pdf(u, np.array(cell), 0.22).prod(1) for u in numbers], axis=0)
        for cell in product(*map(range, joint.shape))
    ]
    hits = np.argmax(densities, axis=0) == np.ravel_multi_index(tuple(data.factors.values()), joint.shape)
    assert data.bayes_ceiling == hits.mean()
    assert 0.99 < hits.mean() < 1


def test_impossible_cells_do_not_occur() -> None:
    data = synthetic_nets(3000, seed=1, net="asia", tables="own")
    tub, lung, either = (data.factors[name] == 0 for name in ("tub", "lung", "either"))
    np.testing.assert_array_equal(either, tub | lung)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples: expected at least 1, got 0"),
        ({"seed": -1}, "seed: expected a non-negative integer, got -1"),
        ({"table_seed": -1}, "table_seed: expected at least 0, got -1"),
        ({"net": "alarm"}, "net: expected one of earthquake, cancer, survey, asia, got 'alarm'"),
        ({"tables": "true"}, "tables: expected one of random, own, got 'true'"),
        ({"emission": "none"}, "emission: expected one of blocks, mixed, got 'none'"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        synthetic_nets(**arguments)  # type: ignore[arg-type]
