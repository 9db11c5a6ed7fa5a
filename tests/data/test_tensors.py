"""Tensors for training: scaling from the training split, masks and gaps, batches, the fingerprint."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.stored import StoredRows
from causalpima.inference.data.tensors import Scale, TensorData, fingerprint, to_tensors
from causalpima.models.batch import Standardisation, Transform

CPU = torch.device("cpu")
BOTH = {"image": Scale(), "curve": Scale()}


def make(n: int = 7) -> MultimodalData:
    """Complete images, and curves of which two were not measured."""
    generator = np.random.default_rng(3)
    present = np.ones(n, dtype=bool)
    present[[1, n - 1]] = False
    image = generator.normal(5.0, 3.0, (n, 2, 3, 1)).astype(np.float32)
    curve = generator.normal(-40.0, 0.1, (n, 4)).astype(np.float32) * present[:, None]
    return MultimodalData(
        "toy",
        {"image": image, "curve": curve},
        {"image": np.ones(n, dtype=bool), "curve": present},
        {"image": "image", "curve": "curve"},
    )


def in_memory(column: Tensor | StoredRows) -> Tensor:
    """A column that is known not to be on disk."""
    assert isinstance(column, Tensor)
    return column


def changed(data: MultimodalData, name: str, values: np.ndarray) -> MultimodalData:
    return dataclasses.replace(data, modalities={**data.modalities, name: values})


def whole(n: int) -> TensorData:
    data = make(n)
    return to_tensors(data, np.ones(n, dtype=bool), BOTH, CPU)


def test_scaling_comes_from_present_samples_of_the_training_split_alone() -> None:
    data, training = make(), np.array([True, True, True, True, False, False, False])
    tensors = to_tensors(data, training, BOTH, CPU)
    seen = training & data.present["curve"]
    assert seen.sum() == 3
    curve = data.modalities["curve"][seen].astype(np.float64)
    found = tensors.standardisation["curve"]
    assert (found.loc, found.scale) == pytest.approx((curve.mean(), curve.std()), rel=1e-12)
    assert float(tensors.values["curve"][seen].mean()) == pytest.approx(0.0, abs=1e-4)
    assert float(tensors.values["curve"][seen].std(unbiased=False)) == pytest.approx(1.0, rel=1e-4)
    held_out = changed(data, "image", np.where(training[:, None, None, None], data.modalities["image"], 1e6))
    assert to_tensors(held_out, training, BOTH, CPU).standardisation == tensors.standardisation


def test_scaling_leads_back_to_the_units_of_the_data() -> None:
    data = make()
    tensors = whole(7)
    for name, standardisation in tensors.standardisation.items():
        back = standardisation.invert(in_memory(tensors.values[name]).double().numpy())
        present, tolerance = data.present[name], 1e-6 * standardisation.scale
        np.testing.assert_allclose(back[present], data.modalities[name][present], rtol=1e-6, atol=tolerance)


def test_absent_rows_are_zero_and_only_incomplete_modalities_have_a_mask() -> None:
    data = make()
    tensors = whole(7)
    assert tensors.present["image"] is None
    mask = tensors.present["curve"]
    assert mask is not None
    assert mask.tolist() == data.present["curve"].tolist()
    assert not in_memory(tensors.values["curve"])[~mask].any()
    assert in_memory(tensors.values["curve"])[mask].all()


def test_rows_of_absent_samples_do_not_matter() -> None:
    data = make()
    filled = data.modalities["curve"].copy()
    filled[~data.present["curve"]] = np.nan
    tensors, expected = to_tensors(changed(data, "curve", filled), np.ones(7, dtype=bool), BOTH, CPU), whole(7)
    assert torch.equal(in_memory(tensors.values["curve"]), in_memory(expected.values["curve"]))
    assert tensors.standardisation == expected.standardisation


def test_without_standardising_values_stay() -> None:
    data = make()
    tensors = to_tensors(data, np.ones(7, dtype=bool), {"image": Scale(False), "curve": Scale()}, CPU)
    assert tensors.standardisation["image"] == Standardisation()
    assert torch.equal(in_memory(tensors.values["image"]), torch.from_numpy(data.modalities["image"]))
    assert {in_memory(values).dtype for values in tensors.values.values()} == {torch.float32}


@pytest.mark.parametrize("constant", [0.1, -3e7])
def test_modality_constant_in_training_is_centred_and_not_blown_up(constant: float) -> None:
    data, training = make(1001), np.arange(1001) < 1000
    values = np.full((1001, 4), constant, dtype=np.float32)
    values[-1] = constant + 8.0
    data = dataclasses.replace(changed(data, "curve", values), present=dict.fromkeys(BOTH, training | True))
    tensors = to_tensors(data, training, BOTH, CPU)
    assert tensors.standardisation["curve"].scale == 1.0
    assert float(in_memory(tensors.values["curve"]).abs().max()) < 9.0


def test_modality_without_training_samples_is_left_alone() -> None:
    data = make()
    training = ~data.present["curve"]
    assert to_tensors(data, training, BOTH, CPU).standardisation["curve"] == Standardisation()


def test_values_at_the_end_of_the_range_of_float32_are_standardised() -> None:
    data = make()
    values = np.full((7, 4), 3.4e38, dtype=np.float32)
    values[0] = -3.4e38
    tensors = to_tensors(changed(data, "curve", values), np.ones(7, dtype=bool), BOTH, CPU)
    assert float(in_memory(tensors.values["curve"]).abs().max()) == pytest.approx(2.0, rel=1e-3)


@given(n=st.integers(3, 20), size=st.integers(1, 25), seed=st.integers(0, 99))
def test_batches_hold_every_sample_once_and_the_last_may_be_short(n: int, size: int, seed: int) -> None:
    data = whole(n)
    torch.manual_seed(seed)
    for shuffle in (False, True):
        batches = list(data.batches(size, shuffle=shuffle))
        assert [len(batch) for batch in batches] == [size] * (n // size) + [n % size] * (n % size > 0)
        index = torch.cat([batch.index for batch in batches])
        assert sorted(index.tolist()) == list(range(n))
        assert shuffle or index.tolist() == list(range(n))


def test_batch_carries_values_and_mask_of_its_samples_and_the_size_of_the_whole() -> None:
    data = whole(7)
    mask = data.present["curve"]
    assert mask is not None
    for batch in data.batches(3, shuffle=True):
        assert batch.n_samples == 7
        assert batch.present["image"] is None
        assert torch.equal(batch.values["curve"], data.values["curve"][batch.index])
        assert torch.equal(batch.values["image"], data.values["image"][batch.index])
        shown = batch.present["curve"]
        assert shown is not None
        assert torch.equal(shown, mask[batch.index])


def test_order_comes_from_torchs_generator() -> None:
    def order(seed: int) -> list[int]:
        torch.manual_seed(seed)
        return [int(i) for batch in whole(50).batches(8, shuffle=True) for i in batch.index]

    assert order(1) == order(1)
    assert order(1) != order(2)
    torch.manual_seed(1)
    data = whole(50)
    first, second = (torch.cat([b.index for b in data.batches(8, shuffle=True)]) for _ in range(2))
    assert not torch.equal(first, second), "every epoch has an order of its own"
    before = torch.get_rng_state()
    list(data.batches(8))
    assert torch.equal(torch.get_rng_state(), before), "nothing is drawn where nothing is shuffled"


def test_subset_is_a_data_set_of_its_own_on_the_same_scale() -> None:
    data = whole(7)
    part = data.subset(np.array([6, 2, 0]))
    assert part.n_samples == 3
    assert part.standardisation == data.standardisation
    mask = part.present["curve"]
    assert mask is not None
    assert mask.tolist() == [False, True, True]
    (batch,) = part.batches(10)
    assert batch.n_samples == 3
    assert torch.equal(batch.values["image"], in_memory(data.values["image"])[[6, 2, 0]])


@given(name=st.sampled_from(["image", "curve"]), row=st.integers(0, 6), element=st.integers(0, 3))
def test_fingerprint_changes_with_every_value_and_every_mask(name: str, row: int, element: int) -> None:
    data = make()
    values = data.modalities[name].copy()
    values.reshape(7, -1)[row, element] = np.nextafter(values.reshape(7, -1)[row, element], np.float32(1e9))
    mask = data.present[name].copy()
    mask[row] = not mask[row]
    other_mask = dataclasses.replace(data, present={**data.present, name: mask})
    assert len({fingerprint(data), fingerprint(changed(data, name, values)), fingerprint(other_mask)}) == 3


def test_fingerprint_changes_with_names_and_shapes_and_with_nothing_else() -> None:
    data = make()
    renamed = dataclasses.replace(
        data,
        modalities={"image": data.modalities["image"], "load": data.modalities["curve"]},
        present={"image": data.present["image"], "load": data.present["curve"]},
    )
    flat = changed(data, "image", data.modalities["image"].reshape(7, 6))
    assert len({fingerprint(data), fingerprint(renamed), fingerprint(flat)}) == 3
    assert fingerprint(data) == fingerprint(make())
    strided = changed(data, "image", np.asfortranarray(data.modalities["image"]))
    assert fingerprint(strided) == fingerprint(data), "the layout in memory is no difference"


# Gaps, transforms, covariates


def with_gaps() -> MultimodalData:
    data = make()
    observed = np.ones((7, 4), dtype=bool)
    observed[0, 2:] = observed[3, 0] = observed[[1, 6]] = False
    curve = np.where(observed, data.modalities["curve"], 0)
    return dataclasses.replace(changed(data, "curve", curve), observed={"curve": observed})


def test_missing_elements_are_zero_and_count_in_no_statistic() -> None:
    data = with_gaps()
    tensors = to_tensors(data, np.ones(7, dtype=bool), BOTH, CPU)
    observed = data.observed["curve"]
    measured = data.modalities["curve"][observed].astype(np.float64)
    found = tensors.standardisation["curve"]
    assert (found.loc, found.scale) == pytest.approx((measured.mean(), measured.std()), rel=1e-12)
    assert not in_memory(tensors.values["curve"])[~torch.from_numpy(observed)].any()
    assert tensors.n_elements["curve"] == observed.sum() == 17
    assert tensors.n_elements["image"] == 7 * 6
    (batch,) = tensors.subset(np.array([3, 0])).batches(5)
    assert torch.equal(batch.observed["curve"], torch.from_numpy(observed[[3, 0]]))
    assert float(batch.n_elements("curve")) == 5
    assert float(batch.n_elements("image")) == 12


def test_fingerprint_changes_with_gaps_covariates_and_groups() -> None:
    data = with_gaps()
    other = data.observed["curve"].copy()
    other[2, 1] = False
    codes = np.arange(7) % 2
    variants = [
        data,
        dataclasses.replace(data, observed={"curve": other}),
        dataclasses.replace(data, groups=codes),
        dataclasses.replace(data, covariates={"b": codes}, covariate_levels={"b": ("x", "y")}),
    ]
    assert len({fingerprint(variant) for variant in variants}) == 4


def test_covariates_are_indicators_of_their_levels() -> None:
    codes = {"batch": np.array([0, 1, 2, 0, 1, 2, 0]), "side": np.array([1, 0, 0, 0, 1, 1, 0])}
    levels = {"batch": ("a", "b", "c"), "side": ("l", "r")}
    data = dataclasses.replace(make(), covariates=codes, covariate_levels=levels)
    tensors = to_tensors(data, np.ones(7, dtype=bool), BOTH, CPU)
    assert tensors.covariates is not None
    assert tensors.covariates[2].tolist() == [0, 0, 1, 1, 0]
    (batch,) = tensors.batches(9)
    assert batch.covariates is not None
    assert torch.equal(batch.covariates, tensors.covariates)


def positive() -> MultimodalData:
    data = make()
    curve = np.exp(np.random.default_rng(0).normal(0, 2, (7, 4))).astype(np.float32)
    return changed(data, "curve", np.where(data.present["curve"][:, None], curve, 0))


@pytest.mark.parametrize("transform", ["log", "asinh"])
def test_transforms_lead_to_unit_scale_and_back_with_the_right_density(transform: Transform) -> None:
    data = positive()
    scale = Scale(transform=transform, knee=0.3 if transform == "asinh" else 0.0)
    tensors = to_tensors(data, np.ones(7, dtype=bool), {**BOTH, "curve": scale}, CPU)
    present = data.present["curve"]
    standard = in_memory(tensors.values["curve"])[torch.from_numpy(present)].double()
    assert float(standard.mean()) == pytest.approx(0, abs=1e-6)
    assert float(standard.std(unbiased=False)) == pytest.approx(1, rel=1e-5)
    found = tensors.standardisation["curve"]
    np.testing.assert_allclose(found.invert(standard.numpy()), data.modalities["curve"][present], rtol=1e-5)
    x = torch.from_numpy(data.modalities["curve"][present].astype(np.float64)).requires_grad_()
    found.apply(x).sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(found.log_derivative(x.detach()), x.grad.log())
    (batch,) = tensors.batches(9)
    expected = np.zeros(7)
    expected[present] = x.grad.log().sum(1).numpy()
    np.testing.assert_allclose(tensors.log_jacobian("curve", batch).numpy(), expected, rtol=1e-4, atol=1e-4)


def test_knee_is_by_default_the_tenth_part_of_the_sizes_from_below() -> None:
    data = positive()
    tensors = to_tensors(data, np.ones(7, dtype=bool), {**BOTH, "curve": Scale(transform="asinh")}, CPU)
    sizes = data.modalities["curve"][data.present["curve"]]
    assert tensors.standardisation["curve"].knee == pytest.approx(np.quantile(sizes.astype(np.float64), 0.1))


def test_logarithm_of_what_is_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match=r"modality\.image\.transform: expected positive values for log, got -"):
        to_tensors(make(), np.ones(7, dtype=bool), {**BOTH, "image": Scale(transform="log")}, CPU)


def test_robust_scaling_is_that_of_a_gaussian_and_ignores_outliers() -> None:
    generator = np.random.default_rng(0)
    image = generator.normal(3.0, 2.0, (400, 6)).astype(np.float32)
    image[:3] = 1e6
    data = changed(make(), "image", image.reshape(400, 2, 3, 1))
    data = dataclasses.replace(
        data,
        modalities={"image": data.modalities["image"]},
        present={"image": np.ones(400, dtype=bool)},
        kinds={"image": "image"},
    )
    found = to_tensors(data, np.ones(400, dtype=bool), {"image": Scale(robust=True)}, CPU).standardisation["image"]
    assert found.loc == pytest.approx(3.0, abs=0.2)
    assert found.scale == pytest.approx(2.0, rel=0.06)
