"""Components of a user's own, named as `module:name` or passed as objects: found, made and checked."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from guides.encoders import Encoder
from guides.fusion import Fusion
from models.graph import NodeGraph
from models.latent_priors import LatentPrior
from models.user_code import UserKind, call_user_code, named_object

__all__ = ["made", "user_component"]

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
