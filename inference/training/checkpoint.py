"""Numbered checkpoints that survive a kill at any moment, and loading that executes no code."""

from __future__ import annotations

import hashlib
import io
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load as load_safetensors
from safetensors.torch import save as save_safetensors
from torch import Tensor

from causalpima.inference.store.files import (
    REPLACED,
    library_versions,
    make_folder,
    remove_folder,
    remove_partials,
    to_json,
    write_folder_atomically,
)
from causalpima.inference.store.input_files import check_memory, read_bytes, reason_of

__all__ = [
    "FORMAT_VERSION",
    "Checkpoint",
    "CheckpointError",
    "OtherConfigurationError",
    "load_checkpoint",
    "pack_state",
    "pack_weights",
    "save_checkpoint",
    "unpack_state",
    "unpack_weights",
]


# Weights and training state as bytes; unpacking them executes no code.


def pack_weights(weights: Mapping[str, Tensor]) -> bytes:
    """Tensors by name in the safetensors format, from any device; shared memory is not kept shared."""
    # A clone of each: safetensors refuses views and tensors that share memory.
    return save_safetensors(
        {name: value.detach().cpu().clone(memory_format=torch.contiguous_format) for name, value in weights.items()}
    )


def unpack_weights(content: bytes) -> dict[str, Tensor]:
    """Tensors that `pack_weights` packed, on the CPU."""
    return load_safetensors(content)


def pack_state(state: Mapping[str, Any]) -> bytes:
    """Nested dicts, lists and tuples of tensors, numbers, strings and None, as `torch.load(weights_only=True)` reads.

    Raises:
        ValueError: `state` holds anything else; the message says where.
    """
    buffer = io.BytesIO()
    torch.save(_plain(state, "state"), buffer)
    return buffer.getvalue()


def unpack_state(content: bytes) -> dict[str, Any]:
    """What `pack_state` packed, tensors on the CPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a pickle that we did not write: it is refused, or it is read
        state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    return state


def _plain(value: object, where: str) -> Any:
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()  # a view would bring all of its storage
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Mapping):
        return {_plain(key, where): _plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
        return tuple(items) if isinstance(value, tuple) else items
    kind = type(value).__name__
    raise ValueError(f"{where}: expected tensors, numbers, strings, lists or dicts, got {kind}; convert it")


FORMAT_VERSION = 1

_MANIFEST, _WEIGHTS, _STATE = "manifest.json", "weights.safetensors", "state.pt"
_NAME = re.compile(rf"^epoch-(\d{{6,}})({REPLACED})?$")


class CheckpointError(ValueError):
    """No checkpoint can be used; the message is one line, names the folder, and says what to do."""


class OtherConfigurationError(CheckpointError):
    """A checkpoint is whole, but of another configuration or other data."""


class _DamagedError(Exception):
    """One checkpoint is incomplete or altered."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint as it was saved; tensors are on the CPU.

    Attributes:
        epoch: The epoch after which it was saved.
        weights: Tensors by name.
        state: Everything else that a run needs to go on.
        path: Folder that it was read from.
        warning: One line, where a newer checkpoint was damaged and this one was used in its stead; else None.
    """

    epoch: int
    weights: dict[str, Tensor]
    state: dict[str, Any]
    path: Path
    warning: str | None = None


def save_checkpoint(
    folder: Path | str,
    epoch: int,
    weights: Mapping[str, Tensor],
    state: Mapping[str, Any],
    fingerprint: str,
    keep: int = 2,
) -> Path:
    """Save `folder/epoch-NNNNNN`, whole or not at all, then remove all but the `keep` newest.

    The folder holds `weights.safetensors`, `state.pt` (loads with `torch.load(weights_only=True)`) and
    `manifest.json` (format version, epoch, fingerprint, SHA-256 of both files, library versions). A run goes forward:
    checkpoints of later epochs than this one, left from a damaged future, are removed too.

    Args:
        folder: Where the numbered checkpoints are; created if missing.
        epoch: Number of the epoch, >= 0.
        weights: Tensors by name, on any device; shared memory is not kept shared.
        state: Nested dicts, lists and tuples of tensors, numbers, strings and None.
        fingerprint: What the configuration hashes to; loading compares it.
        keep: How many checkpoints stay; with 2, damage to the newest costs one interval, not the run.

    Returns:
        The folder of the new checkpoint.

    Raises:
        ValueError: `epoch` or `keep` is out of range, or `state` holds something that could not be loaded safely.
        OutputError: The disk is full, or the folder is not writable.
    """
    _check_range("epoch", epoch, 0)
    _check_range("keep", keep, 1)
    contents = {_WEIGHTS: pack_weights(weights), _STATE: pack_state(state)}
    contents[_MANIFEST] = _manifest(epoch, fingerprint, contents)
    home = make_folder(folder)
    remove_partials(home)
    path = home / f"epoch-{epoch:06d}"
    write_folder_atomically(path, lambda temporary: _write_all(temporary, contents))
    _prune(home, epoch, keep)
    return path


def load_checkpoint(folder: Path | str, fingerprint: str | None = None) -> Checkpoint:
    """Load the newest checkpoint that is whole: every file is there and has the checksum that was written down.

    Args:
        folder: Where the numbered checkpoints are.
        fingerprint: What the configuration of this run hashes to; None takes a checkpoint of any.

    Raises:
        CheckpointError: There is none, all are damaged, or the newest is of another configuration or was written in
            a newer format.
    """
    damage: list[str] = []
    for path in _newest_first(Path(folder)):
        try:
            manifest = _read_manifest(path)
            _check_usable(path, manifest, fingerprint)
            return _read(path, manifest, _warning(path, damage))
        except _DamagedError as error:
            damage.append(f"{path.name} ({error})")
    if damage:
        raise CheckpointError(
            f"no checkpoint in {folder} is whole: {', '.join(damage)}; "
            "restore one from a copy, or start a new run in another folder"
        )
    raise CheckpointError(
        f"expected a checkpoint epoch-NNNNNN in {folder}, got none; name the folder of a run that saved one, "
        "or start a new run"
    )


def _check_range(name: str, value: int, lowest: int) -> None:
    if value < lowest:
        raise ValueError(f"{name}: expected an integer >= {lowest}, got {value}; pass a larger one")


def _manifest(epoch: int, fingerprint: str, contents: Mapping[str, bytes]) -> bytes:
    facts = {
        "format_version": FORMAT_VERSION,
        "epoch": epoch,
        "fingerprint": fingerprint,
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
        "versions": library_versions(),
    }
    return to_json(facts).encode()


def _write_all(folder: Path, contents: Mapping[str, bytes]) -> None:
    for name, content in contents.items():
        (folder / name).write_bytes(content)


def _newest_first(folder: Path) -> Iterator[Path]:
    found = [path for path in folder.iterdir() if _NAME.match(path.name)] if folder.is_dir() else []
    return iter(sorted(found, key=_age, reverse=True))


def _age(path: Path) -> tuple[int, bool]:
    return _epoch(path), not path.name.endswith(REPLACED)


def _epoch(path: Path) -> int:
    return int(path.name.removesuffix(REPLACED).removeprefix("epoch-"))


def _prune(folder: Path, epoch: int, keep: int) -> None:
    found = list(_newest_first(folder))
    current = [path for path in found if _epoch(path) <= epoch]
    for path in found:
        if path not in current[:keep]:
            remove_folder(path)


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(_read_bytes(path / _MANIFEST))
        known = {key: manifest[key] for key in ("format_version", "epoch", "fingerprint", "sha256")}
        return known | {"sha256": dict(manifest["sha256"])}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _DamagedError(f"{_MANIFEST} cannot be decoded") from error


def _check_usable(path: Path, manifest: Mapping[str, Any], fingerprint: str | None) -> None:
    if manifest["format_version"] != FORMAT_VERSION:
        raise CheckpointError(
            f"checkpoint {path}: expected format version {FORMAT_VERSION}, got {manifest['format_version']}; "
            "it was written by another version of this program, use that one"
        )
    if fingerprint is not None and manifest["fingerprint"] != fingerprint:
        raise OtherConfigurationError(
            f"checkpoint {path} is of another configuration: expected fingerprint {fingerprint}, "
            f"got {manifest['fingerprint']}; resume with the settings that the run was started with, or start a new run"
        )


def _read(path: Path, manifest: Mapping[str, Any], warning: str | None) -> Checkpoint:
    if manifest["epoch"] != _epoch(path):
        raise _DamagedError(f"{_MANIFEST} is of epoch {manifest['epoch']}")
    weights, state = (_read_verified(path / name, manifest["sha256"]) for name in (_WEIGHTS, _STATE))
    try:
        return Checkpoint(_epoch(path), unpack_weights(weights), unpack_state(state), path, warning)
    except Exception as error:  # whatever a damaged archive makes its reader raise
        raise _DamagedError(f"cannot be decoded: {type(error).__name__}") from error


def _read_verified(file: Path, checksums: Mapping[str, str]) -> bytes:
    content = _read_bytes(file)
    if hashlib.sha256(content).hexdigest() != checksums.get(file.name):
        raise _DamagedError(f"{file.name} has another checksum")
    return content


def _read_bytes(file: Path) -> bytes:
    """Content of a file of a checkpoint, which lies in the folder of the run: RUN/checkpoint/(final/)epoch-NNNNNN."""
    home = next((folder.parent for folder in file.parents if folder.name == "checkpoint"), file.parent)
    try:
        check_memory(file.stat().st_size)
        return read_bytes(file, home)
    except OSError as error:
        raise _DamagedError(f"{file.name}: {reason_of(error)}") from error


def _warning(path: Path, damage: list[str]) -> str | None:
    return f"damaged: {', '.join(damage)}; going on from {path.name} instead" if damage else None
