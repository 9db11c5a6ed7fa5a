"""Checkpoints: whole or absent under kill -9 at any moment, verified on loading, and free of code."""

from __future__ import annotations

import errno
import json
import os
import pickle
import random
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor

from causalpima.inference.store.files import OutputError
from causalpima.inference.training import checkpoint as module
from causalpima.inference.training.checkpoint import (
    Checkpoint,
    CheckpointError,
    load_checkpoint,
    pack_state,
    save_checkpoint,
    unpack_state,
)

_ROOT = Path(module.__file__).parents[2]


def _weights(epoch: int) -> dict[str, Tensor]:
    return {"layer": torch.full((3, 2), float(epoch), dtype=torch.float64), "scale": torch.tensor(float(epoch))}


def _save(folder: Path, *epochs: int, keep: int = 2) -> None:
    for epoch in epochs:
        save_checkpoint(folder, epoch, _weights(epoch), {"epoch": epoch, "history": [epoch] * 3}, "f00d", keep)


def _check(checkpoint: Checkpoint, epoch: int) -> None:
    assert checkpoint.epoch == epoch
    assert checkpoint.state == {"epoch": epoch, "history": [epoch] * 3}
    assert checkpoint.weights.keys() == {"layer", "scale"}
    for name, value in _weights(epoch).items():
        assert torch.equal(checkpoint.weights[name], value)


def _names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    _save(tmp_path / "checkpoint", 12)
    loaded = load_checkpoint(tmp_path / "checkpoint", "f00d")
    _check(loaded, 12)
    assert loaded.warning is None
    assert loaded.path == tmp_path / "checkpoint" / "epoch-000012"


def test_the_files_are_what_they_say(tmp_path: Path) -> None:
    _save(tmp_path, 12)
    folder = tmp_path / "epoch-000012"
    assert _names(folder) == ["manifest.json", "state.pt", "weights.safetensors"]
    assert torch.load(folder / "state.pt", weights_only=True)["epoch"] == 12
    assert torch.equal(load_file(folder / "weights.safetensors")["layer"], _weights(12)["layer"])
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format_version"] == 1
    assert (manifest["epoch"], manifest["fingerprint"]) == (12, "f00d")
    assert manifest["versions"]["torch"] == torch.__version__
    for name, checksum in manifest["sha256"].items():
        assert sha256((folder / name).read_bytes()).hexdigest() == checksum


def test_tensors_of_every_make_survive(tmp_path: Path) -> None:
    shared = torch.arange(6.0).reshape(2, 3)
    weights = {
        "shared": shared,
        "transposed": shared.T,
        "view": shared[0, :1],
        "half": torch.tensor([1.5], dtype=torch.bfloat16),
        "count": torch.tensor(2**40),
        "flag": torch.tensor([True, False]),
        "empty": torch.zeros(0, 3),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }
    save_checkpoint(tmp_path, 0, weights, {"tensors": weights}, "")
    loaded = load_checkpoint(tmp_path, "")
    for name, value in weights.items():
        for copy in (loaded.weights[name], loaded.state["tensors"][name]):
            assert copy.dtype == value.dtype
            assert torch.equal(copy, value)


def test_a_view_does_not_bring_all_of_its_storage() -> None:
    assert len(pack_state({"view": torch.zeros(100_000)[:1]})) < 5000


def test_generators_go_on_where_they_were(tmp_path: Path) -> None:
    numbers = np.random.default_rng(3)
    state = {
        "torch": torch.Generator().manual_seed(5).get_state(),
        "python": random.Random(7).getstate(),
        "numpy": numbers.bit_generator.state,
    }
    save_checkpoint(tmp_path, 0, {}, state, "")
    loaded = load_checkpoint(tmp_path, "").state
    expected = numbers.random(4), random.Random(7).random(), torch.rand(3, generator=torch.Generator().manual_seed(5))
    numbers.bit_generator.state = loaded["numpy"]
    assert numbers.random(4).tolist() == expected[0].tolist()
    python = random.Random()
    python.setstate(loaded["python"])
    assert python.random() == expected[1]
    generator = torch.Generator()
    generator.set_state(loaded["torch"])
    assert torch.equal(torch.rand(3, generator=generator), expected[2])


def test_an_optimiser_goes_on_where_it_was(tmp_path: Path) -> None:
    def optimiser(parameter: Tensor, steps: int) -> torch.optim.Optimizer:
        adam = torch.optim.Adam([parameter], lr=0.1)
        for _ in range(steps):
            _step(adam, parameter)
        return adam

    def _step(adam: torch.optim.Optimizer, parameter: Tensor) -> None:
        adam.zero_grad()
        (parameter**2).sum().backward()
        adam.step()

    first = torch.tensor([1.0, -3.0], requires_grad=True)
    adam = optimiser(first, 3)
    save_checkpoint(tmp_path, 3, {"parameter": first}, {"adam": adam.state_dict()}, "")
    loaded = load_checkpoint(tmp_path, "")
    second = loaded.weights["parameter"].requires_grad_()
    resumed = optimiser(second, 0)
    resumed.load_state_dict(loaded.state["adam"])
    _step(adam, first)
    _step(resumed, second)
    assert torch.equal(first, second)


def test_numpy_scalars_nested_containers_and_odd_numbers_survive() -> None:
    state: dict[Any, Any] = {
        "a": {"b": [(1, 2.5, None, True, "ä")]},
        "float": np.float64(0.1),
        "int": np.int64(3),
        5: "key",
        "big": -(2**100),
    }
    assert unpack_state(pack_state(state)) == state
    assert type(unpack_state(pack_state(state))["float"]) is float
    infinite = unpack_state(pack_state({"x": [float("inf"), float("nan")]}))["x"]
    assert infinite[0] == float("inf")
    assert infinite[1] != infinite[1]


@pytest.mark.parametrize("value", [np.zeros(2), {1, 2}, print, object(), torch.float32])
def test_what_could_not_be_loaded_safely_is_not_saved(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ValueError, match=r"state\['a'\]\[0\]: expected tensors, numbers, .* got .*; convert it"):
        save_checkpoint(tmp_path, 0, {}, {"a": [value]}, "")
    assert _names(tmp_path) == []


@pytest.mark.parametrize(("name", "epoch", "keep"), [("epoch", -1, 2), ("keep", 0, 0)])
def test_numbers_out_of_range(tmp_path: Path, name: str, epoch: int, keep: int) -> None:
    with pytest.raises(ValueError, match=f"{name}: expected an integer >= "):
        save_checkpoint(tmp_path, epoch, {}, {}, "", keep)


@pytest.mark.parametrize(("keep", "left"), [(1, [1000000]), (2, [999999, 1000000]), (3, [8, 999999, 1000000])])
def test_only_the_newest_stay(tmp_path: Path, keep: int, left: list[int]) -> None:
    _save(tmp_path, 7, 8, 999_999, 1_000_000, keep=keep)
    assert _names(tmp_path) == sorted(f"epoch-{epoch:06d}" for epoch in left)
    _check(load_checkpoint(tmp_path, "f00d"), 1_000_000)


def test_an_abandoned_future_does_not_stay(tmp_path: Path) -> None:
    _save(tmp_path, 7, 8)
    _save(tmp_path, 6)
    assert _names(tmp_path) == ["epoch-000006"]


def test_the_same_epoch_can_be_saved_again(tmp_path: Path) -> None:
    _save(tmp_path, 1, 2)
    save_checkpoint(tmp_path, 2, {"a": torch.ones(1)}, {"again": True}, "f00d")
    assert load_checkpoint(tmp_path, "f00d").state == {"again": True}
    assert _names(tmp_path) == ["epoch-000001", "epoch-000002"]


def test_leftovers_of_a_killed_save_are_removed(tmp_path: Path) -> None:
    left = tmp_path / ".epoch-000001-0123abcd.partial"
    left.mkdir()
    (left / "state.pt").write_text("half")
    _save(tmp_path, 1)
    assert _names(tmp_path) == ["epoch-000001"]


def test_what_was_set_aside_is_used_where_nothing_replaced_it(tmp_path: Path) -> None:
    _save(tmp_path, 1, 2)
    (tmp_path / "epoch-000002").rename(tmp_path / "epoch-000002-replaced")
    _check(load_checkpoint(tmp_path, "f00d"), 2)
    _save(tmp_path, 3)
    assert _names(tmp_path) == ["epoch-000002-replaced", "epoch-000003"]


def test_what_was_set_aside_is_not_used_where_something_replaced_it(tmp_path: Path) -> None:
    _save(tmp_path / "older", 2)
    (tmp_path / "older" / "epoch-000002").rename(tmp_path / "epoch-000002-replaced")
    save_checkpoint(tmp_path / "newer", 2, {}, {"newer": True}, "f00d")
    (tmp_path / "newer" / "epoch-000002").rename(tmp_path / "epoch-000002")
    assert load_checkpoint(tmp_path, "f00d").state == {"newer": True}


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def _flip(path: Path, place: int = 0) -> None:
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= 0x55
    path.write_bytes(bytes(content))


def _of_another_epoch(path: Path) -> None:
    path.write_text(path.read_text().replace('"epoch": 12', '"epoch": 13'))


@pytest.mark.parametrize(
    ("file", "damage", "reason"),
    [
        ("weights.safetensors", _truncate, "weights.safetensors has another checksum"),
        ("weights.safetensors", Path.unlink, "weights.safetensors: No such file"),
        ("state.pt", _flip, "state.pt has another checksum"),
        ("state.pt", lambda path: path.write_text(""), "state.pt has another checksum"),
        ("manifest.json", _truncate, "manifest.json cannot be decoded"),
        ("manifest.json", _of_another_epoch, "manifest.json is of epoch 13"),
        ("manifest.json", lambda path: path.write_text("[1]"), "manifest.json cannot be decoded"),
        ("manifest.json", lambda path: path.write_bytes(b"\xff\xfe\xff"), "manifest.json cannot be decoded"),
        ("manifest.json", Path.unlink, "manifest.json: No such file"),
    ],
)
def test_the_older_one_is_used_where_the_newest_is_damaged(tmp_path: Path, file: str, damage: Any, reason: str) -> None:
    _save(tmp_path, 11, 12)
    damage(tmp_path / "epoch-000012" / file)
    loaded = load_checkpoint(tmp_path, "f00d")
    _check(loaded, 11)
    assert loaded.warning is not None
    assert f"epoch-000012 ({reason}" in loaded.warning
    assert loaded.warning.endswith("going on from epoch-000011 instead")
    _save(tmp_path, 12)
    _check(load_checkpoint(tmp_path, "f00d"), 12)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    _save(folder, 11, 12)
    return folder


@given(file=st.sampled_from(["weights.safetensors", "state.pt", "manifest.json"]), place=st.integers(0, 10_000))
def test_no_flipped_byte_is_ever_loaded(saved: Path, file: str, place: int) -> None:
    path = saved / "epoch-000012" / file
    _flip(path, place)
    try:
        loaded = load_checkpoint(saved, "f00d")
        _check(loaded, 12 if loaded.warning is None else 11)
        assert loaded.warning or file == "manifest.json"
    except CheckpointError as error:  # the flipped byte is in the fingerprint or in the format version
        assert "manifest.json" in file, error  # noqa: PT017
    finally:
        _flip(path, place)


def test_all_are_damaged(tmp_path: Path) -> None:
    _save(tmp_path, 11, 12)
    _flip(tmp_path / "epoch-000012" / "state.pt")
    (tmp_path / "epoch-000011" / "manifest.json").unlink()
    message = (
        r"no checkpoint in .* is whole: epoch-000012 \(state.pt has .*\), epoch-000011 \(manifest.json: .*\); restore"
    )
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path, "f00d")


@pytest.mark.parametrize("folder", ["empty", "absent"])
def test_none_is_there(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty" / "epoch-12").mkdir(parents=True)
    with pytest.raises(CheckpointError, match=r"expected a checkpoint epoch-NNNNNN in .*, got none; name the folder"):
        load_checkpoint(tmp_path / folder, "f00d")


def test_another_configuration(tmp_path: Path) -> None:
    _save(tmp_path, 1)
    with pytest.raises(
        CheckpointError, match="another configuration: expected fingerprint beef, got f00d; resume with"
    ):
        load_checkpoint(tmp_path, "beef")


def test_a_newer_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _save(tmp_path, 1)
    monkeypatch.setattr(module, "FORMAT_VERSION", 2)
    _save(tmp_path, 2)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="expected format version 1, got 2; it was written by another version"):
        load_checkpoint(tmp_path, "f00d")


class _Attack:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.target),)


def test_loading_executes_no_code(tmp_path: Path) -> None:
    _save(tmp_path / "run", 1)
    state = tmp_path / "run" / "epoch-000001" / "state.pt"
    attack = pickle.dumps(_Attack(tmp_path / "owned"))
    state.write_bytes(attack)
    manifest = state.with_name("manifest.json")
    facts = json.loads(manifest.read_text())
    facts["sha256"]["state.pt"] = sha256(attack).hexdigest()
    manifest.write_text(json.dumps(facts))
    with pytest.raises(CheckpointError, match="cannot be decoded"):
        load_checkpoint(tmp_path / "run", "f00d")
    assert not (tmp_path / "owned").exists()
    pickle.loads(attack)
    assert (tmp_path / "owned").exists()


def test_a_full_disk_leaves_the_older_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _save(tmp_path, 1)

    def full(path: Path, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutputError, match="epoch-000002: the disk is full; free some space"):
        _save(tmp_path, 2)
    assert _names(tmp_path) == ["epoch-000001"]
    _check(load_checkpoint(tmp_path, "f00d"), 1)


_KILLED = """
import os, random, shutil, signal, sys, time, torch
sys.path[:0] = sys.argv[2:]
from test_checkpoint import _save, load_checkpoint
from pathlib import Path
torch.set_num_threads(1)
os.fsync = lambda descriptor: None  # which a killed process, other than a machine without power, does not need
home, left = Path(sys.argv[1]), None

class Killed(BaseException):
    pass

def hook(event, arguments):  # from the kill on nothing reaches the disk, clearing up included
    global left
    if left is not None and event in {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"}:
        left -= 1
        if left <= 0:
            raise Killed

def check(folder, *epochs):
    loaded = load_checkpoint(folder, "f00d")
    assert loaded.warning is None and loaded.epoch in epochs, (loaded, epochs)
    assert all(len(list(path.iterdir())) == 3 for path in folder.glob("epoch-*"))
    assert loaded.state["epoch"] == loaded.weights["scale"].item() == loaded.epoch
    return loaded.epoch

def killed_at(step, folder, last):
    global left
    left = step
    try:
        _save(folder, last)
    except Killed:
        return True
    finally:
        left = None

def steps(before, last):
    start, folder = home / f"start-{last}", home / "step"
    _save(start, *before)
    for step in range(1, 1000):
        shutil.copytree(start, folder)
        killed = killed_at(step, folder, last)
        check(folder, before[-1], last)
        _save(folder, last + 1)
        check(folder, last + 1)
        assert len(list(folder.iterdir())) <= 2
        shutil.rmtree(folder)
        if not killed:
            return step

def times(rounds, folder, epoch=0):
    _save(folder, epoch)
    for _ in range(rounds):
        child = os.fork()
        while child == 0:
            epoch += 1
            _save(folder, epoch)
        time.sleep(random.uniform(0.05, 0.15))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        epoch = check(folder, *range(epoch, epoch + 10_000))
    return epoch

print(times(8, home / "time"))
sys.addaudithook(hook)
print(steps([1, 2], 3), steps([1, 2], 2))
"""


def test_kill_9_at_any_step_and_any_time_leaves_a_checkpoint(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _KILLED, str(tmp_path), str(_ROOT), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    epochs_saved, steps_new, steps_again = (int(count) for count in done.stdout.split())
    assert epochs_saved > 0
    assert min(steps_new, steps_again) > 10
