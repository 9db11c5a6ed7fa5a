"""Tensors for training: scaling from the training split, masks, batches, the fingerprint, the split."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inference.data.multimodal import MultimodalData
from inference.data.tensors import Scaling, TensorData, fingerprint, split_samples, to_tensors

CPU = torch.device("cpu")
BOTH = {"image": True, "curve": True}


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
    assert tensors.scaling["curve"] == pytest.approx((curve.mean(), curve.std()), rel=1e-12)
    assert float(tensors.values["curve"][seen].mean()) == pytest.approx(0.0, abs=1e-4)
    assert float(tensors.values["curve"][seen].std(unbiased=False)) == pytest.approx(1.0, rel=1e-4)
    held_out = changed(data, "image", np.where(training[:, None, None, None], data.modalities["image"], 1e6))
    assert to_tensors(held_out, training, BOTH, CPU).scaling == tensors.scaling


def test_scaling_leads_back_to_the_units_of_the_data() -> None:
    data = make()
    tensors = whole(7)
    for name, (loc, scale) in tensors.scaling.items():
        back = tensors.values[name].double().numpy() * scale + loc
        present = data.present[name]
        np.testing.assert_allclose(back[present], data.modalities[name][present], rtol=1e-6, atol=1e-6 * scale)


def test_absent_rows_are_zero_and_only_incomplete_modalities_have_a_mask() -> None:
    data = make()
    tensors = whole(7)
    assert tensors.present["image"] is None
    mask = tensors.present["curve"]
    assert mask is not None
    assert mask.tolist() == data.present["curve"].tolist()
    assert not tensors.values["curve"][~mask].any()
    assert tensors.values["curve"][mask].all()


def test_rows_of_absent_samples_do_not_matter() -> None:
    data = make()
    filled = data.modalities["curve"].copy()
    filled[~data.present["curve"]] = np.nan
    tensors, expected = to_tensors(changed(data, "curve", filled), np.ones(7, dtype=bool), BOTH, CPU), whole(7)
    assert torch.equal(tensors.values["curve"], expected.values["curve"])
    assert tensors.scaling == expected.scaling


def test_without_standardising_values_stay() -> None:
    data = make()
    tensors = to_tensors(data, np.ones(7, dtype=bool), {"image": False, "curve": True}, CPU)
    assert tensors.scaling["image"] == Scaling(0.0, 1.0)
    assert torch.equal(tensors.values["image"], torch.from_numpy(data.modalities["image"]))
    assert {values.dtype for values in tensors.values.values()} == {torch.float32}


@pytest.mark.parametrize("constant", [0.1, -3e7])
def test_modality_constant_in_training_is_centred_and_not_blown_up(constant: float) -> None:
    data, training = make(1001), np.arange(1001) < 1000
    values = np.full((1001, 4), constant, dtype=np.float32)
    values[-1] = constant + 8.0
    data = dataclasses.replace(changed(data, "curve", values), present=dict.fromkeys(BOTH, training | True))
    tensors = to_tensors(data, training, BOTH, CPU)
    assert tensors.scaling["curve"].scale == 1.0
    assert float(tensors.values["curve"].abs().max()) < 9.0


def test_modality_without_training_samples_is_left_alone() -> None:
    data = make()
    training = ~data.present["curve"]
    assert to_tensors(data, training, BOTH, CPU).scaling["curve"] == Scaling(0.0, 1.0)


def test_values_at_the_end_of_the_range_of_float32_are_standardised() -> None:
    data = make()
    values = np.full((7, 4), 3.4e38, dtype=np.float32)
    values[0] = -3.4e38
    tensors = to_tensors(changed(data, "curve", values), np.ones(7, dtype=bool), BOTH, CPU)
    assert float(tensors.values["curve"].abs().max()) == pytest.approx(2.0, rel=1e-3)


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
    assert part.scaling == data.scaling
    mask = part.present["curve"]
    assert mask is not None
    assert mask.tolist() == [False, True, True]
    (batch,) = part.batches(10)
    assert batch.n_samples == 3
    assert torch.equal(batch.values["image"], data.values["image"][[6, 2, 0]])


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


@given(n=st.integers(1, 300), fraction=st.floats(0.0, 0.99), seed=st.integers(0, 2**32))
def test_split_has_the_size_asked_for_and_keeps_a_training_sample(n: int, fraction: float, seed: int) -> None:
    split = split_samples(n, fraction, seed)
    assert split.shape == (n,)
    assert set(split) <= {"train", "validation"}
    assert (split == "train").any()
    assert (split == "validation").sum() == min(round(n * fraction), n - 1)
    assert (split == split_samples(n, fraction, seed)).all()


def test_split_depends_on_the_seed_and_on_no_other_generator() -> None:
    splits = [split_samples(100, 0.3, seed) for seed in range(5)]
    assert len({tuple(split) for split in splits}) == 5
    np.random.seed(1)
    torch.manual_seed(1)
    assert (split_samples(100, 0.3, 0) == splits[0]).all()
    frequency = np.mean([split_samples(10, 0.3, seed) == "validation" for seed in range(400)], axis=0)
    np.testing.assert_allclose(frequency, 0.3, atol=4.5 * (0.3 * 0.7 / 400) ** 0.5)
