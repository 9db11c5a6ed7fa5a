"""Which settings name code of a user's own as `module:NAME`, and what its files hash to."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from models.user_code import import_module, names_user_code, remember_module

__all__ = ["own_names", "remember_code", "source_hashes"]

_SETTINGS = (("model", "prior"), ("model", "graph"), ("guide", "fusion"))
_OF_MODALITIES = (("encoder", "kind"), ("decoder", "kind"))


def own_names(settings: Mapping[str, Any]) -> dict[str, str]:
    """Every `module:NAME` among settings, by the name of the setting.

    Args:
        settings: Nested plain values, as `config.yaml` has them.
    """
    return {name: value for name, value in _named(settings) if isinstance(value, str) and names_user_code(value)}


def remember_code(settings: Mapping[str, Any]) -> None:
    """Remember that this user runs this code, by own will: later commands on the run do not ask (`on_word_of_files`).

    Args:
        settings: As `own_names` takes them.
    """
    for value in own_names(settings).values():
        remember_module(value.partition(":")[0])


def _named(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for path in _SETTINGS:
        yield ".".join(path), _at(settings, path)
    for modality, entry in (settings.get("modality") or {}).items():
        for path in _OF_MODALITIES:
            yield ".".join(("modality", modality, *path)), _at(entry, path)
    for modality, how in (settings.get("read_outs") or {}).items():
        yield f"read_outs.{modality}", how


def _at(settings: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        settings = settings.get(name) if isinstance(settings, Mapping) else None
    return settings


def source_hashes(settings: Mapping[str, Any]) -> dict[str, str]:
    """SHA-256 of the files that `module:NAME` comes from, by the setting that names it.

    These are the file of the module and, where the object is only imported there, that of its definition. What these
    files import in turn is not looked at.

    Args:
        settings: As `own_names` takes them.

    Raises:
        ValueError: No such module, or its import fails.
    """
    return {name: _hash(name, value) for name, value in own_names(settings).items()}


def _hash(setting: str, value: str) -> str:
    module_name, _, object_name = value.partition(":")
    module = import_module(f"{setting} {value}", module_name)
    origin = sys.modules.get(str(getattr(getattr(module, object_name, None), "__module__", "")), module)
    digest = hashlib.sha256()
    for file in dict.fromkeys((_source(module), _source(origin))):
        digest.update(Path(file).read_bytes() if file else b"")
    return digest.hexdigest()


def _source(module: Any) -> str | None:
    """Its file; a built-in module has none."""
    try:
        return inspect.getsourcefile(module)
    except TypeError:
        return None
