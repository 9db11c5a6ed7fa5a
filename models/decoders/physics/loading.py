"""A law from its name, or from `module:Class` in a file of the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from models.decoders.physics.checks import check_interface
from models.decoders.physics.law import PhysicsLaw
from models.decoders.physics.table import LAWS
from models.user_code import UserKind, call_user_code, named_object

__all__ = ["is_law_class", "load_law"]


def load_law(name: str, options: Mapping[str, Any] | None = None) -> PhysicsLaw:
    """Build a law.

    Args:
        name: A key of `LAWS`, or `module:Class`; the module is found on Python's path or from the current directory.
        options: Arguments of the class.

    Raises:
        ValueError: Unknown name, module or class; no law; options that do not fit; a law that breaks its interface.
            Whether its curve is finite is checked when it meets the positions of the data.
    """
    build = named_object(f"law {name}", name, _KIND) if ":" in name else _shipped(name)
    law: PhysicsLaw = call_user_code(f"law {name}", build, options=options)
    check_interface(law)
    return law


def _shipped(name: str) -> Callable[..., PhysicsLaw]:
    if name not in LAWS:
        raise ValueError(f"law: expected one of {', '.join(LAWS)}, or module:Class for a law of your own, got {name!r}")
    return LAWS[name]


def is_law_class(value: object) -> bool:
    """Whether an object is a law that can be built."""
    return inspect.isclass(value) and issubclass(value, PhysicsLaw) and value is not PhysicsLaw


_KIND = UserKind("a class", is_law_class, "a subclass of models.decoders.physics.PhysicsLaw", "laws")
