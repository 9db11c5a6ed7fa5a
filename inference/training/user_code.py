"""Components of a user's own, named as `module:name` or passed as objects: found, made and checked."""

from __future__ import annotations

import copy
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from causalpima.guides.encoders import Encoder
from causalpima.guides.fusion import Fusion
from causalpima.models.graph.base import NodeGraph
from causalpima.models.latent_priors import LatentPrior
from causalpima.models.user_code import (
    UserKind,
    call_user_code,
    import_module,
    named_object,
    names_user_code,
    remember_module,
)

__all__ = [
    "made",
    "own_names",
    "remember_code",
    "source_hashes",
    "user_component",
]


_PAGE = "docs/components.md"


def _is_maker(base: type) -> Callable[[object], bool]:
    """A class of that kind, or any function: what it returns is checked when it is called."""
    return lambda value: (
        inspect.isfunction(value)
        or (inspect.isclass(value) and issubclass(value, base) and not inspect.isabstract(value))
    )


def _kind(base: type, plural: str) -> UserKind:
    expected = f"a subclass of {_place(base)} or a function that makes one ({_PAGE} shows one)"
    return UserKind("a class or function", _is_maker(base), expected, plural, (base,))


def _place(base: type) -> str:
    """Where a class is imported from."""
    return f"{base.__module__.removesuffix('.base')}.{base.__name__}"


_KINDS: Mapping[type, UserKind] = {
    NodeGraph: _kind(NodeGraph, "graphs"),
    Fusion: _kind(Fusion, "fusions"),
    Encoder: _kind(Encoder, "encoders"),
}


_FACTS: Mapping[type, tuple[str, ...]] = {
    NodeGraph: ("config",),
    Fusion: ("n_modalities", "latent_dim", "prior_expert"),
    Encoder: ("shape", "sizes", "latent_dim", "masked", "features"),
    LatentPrior: ("latent_dim",),
}
"""What each is called with; a graph that is a class with its outcomes."""


def user_component(setting: str, name: str, base: type) -> Callable[..., Any]:
    """The class or function of a user's that a setting names.

    Args:
        setting: Name of the setting, for messages.
        name: `module:name`.
        base: What it makes.

    Raises:
        ValueError: It is not there, or is no such class or function.
    """
    found: Callable[..., Any] = named_object(f"{setting} {name}", name, _KINDS[base])
    return found


def made(
    subject: str,
    given: nn.Module | Callable[..., Any],
    base: type,
    arguments: tuple[Any, ...],
    of_class: tuple[Any, ...] | None = None,
) -> Any:
    """The component that was given, or that what was given makes.

    Args:
        subject: Beginning of messages.
        given: A module, which is copied, so that starts do not share parameters; or a class or function.
        base: What it has to be.
        arguments: What a function is called with.
        of_class: The same for a class; default: as a function.

    Raises:
        ValueError: It cannot be made, or something else is made.
    """
    if isinstance(given, base):
        return copy.deepcopy(given)
    if not callable(given) or isinstance(given, nn.Module):
        raise ValueError(f"{subject}: expected a {base.__name__} or what makes one, got {type(given).__name__}")
    is_class = of_class is not None and inspect.isclass(given)
    chosen = of_class if of_class is not None and is_class else arguments
    names = ("outcomes",) if is_class else _FACTS[base]
    try:
        result = call_user_code(subject, given, *chosen, names=names)
    except ValueError as error:
        raise ValueError(str(error) if str(error).startswith(subject) else f"{subject}: {error}") from error
    if not isinstance(result, base):
        raise ValueError(
            f"{subject}: expected it to make a {_place(base)}, got {type(result).__name__}; {_PAGE} shows one"
        )
    return result


# Which settings name code of a user's own as `module:NAME`, and what its files hash to.


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
