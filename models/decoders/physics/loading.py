"""A law from its name, or from `module:Class` in a file of the user's own."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from models.decoders.physics.checks import check_interface, one_line
from models.decoders.physics.law import PhysicsLaw
from models.decoders.physics.table import LAWS

__all__ = ["load_law"]


def load_law(name: str, options: Mapping[str, Any] | None = None) -> PhysicsLaw:
    """Build a law.

    Args:
        name: A key of `LAWS`, or `module:Class`; the module is found on Python's path or from the current directory.
        options: Arguments of the class.

    Raises:
        ValueError: Unknown name, module or class; no law; options that do not fit; a law that breaks its interface.
            Whether its curve is finite is checked when it meets the positions of the data.
    """
    build = _class_of(name) if ":" in name else _shipped(name)
    law = _construct(name, build, dict(options or {}))
    check_interface(law)
    return law


def _shipped(name: str) -> Callable[..., PhysicsLaw]:
    if name not in LAWS:
        raise ValueError(f"law: expected one of {', '.join(LAWS)}, or module:Class for a law of your own, got {name!r}")
    return LAWS[name]


def _class_of(name: str) -> Callable[..., PhysicsLaw]:
    module_name, _, class_name = name.partition(":")
    module = _module(name, module_name)
    laws = [key for key, value in vars(module).items() if _is_law(value)]
    found = getattr(module, class_name, None)
    if found is None:
        known = ", ".join(laws) or "none"
        raise ValueError(f"law {name}: expected a class of {module_name}, got {class_name!r}; its laws: {known}")
    if not _is_law(found):
        raise ValueError(f"law {name}: expected a subclass of models.decoders.physics.PhysicsLaw, got {found!r}")
    return found


def _is_law(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, PhysicsLaw) and value is not PhysicsLaw


def _module(name: str, module_name: str) -> ModuleType:
    """Import a module; the current directory is searched last."""
    directory = os.getcwd()
    if not module_name:
        raise ValueError(f"law {name}: expected a module before the colon, got none; write module:Class")
    sys.path.append(directory)
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ValueError(f"law {name}: {module_name} needs a module that is not there: {error.name}") from error
        raise ValueError(
            f"law {name}: expected a module {module_name} on Python's path or in {directory}, got none; "
            f"write module:Class without .py and run from the folder of the file"
        ) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, too: a user's module must not end the command in silence
        raise ValueError(f"law {name}: importing {module_name} fails: {one_line(error)}") from error
    finally:
        sys.path.remove(directory)


def _construct(name: str, build: Callable[..., PhysicsLaw], options: dict[str, Any]) -> PhysicsLaw:
    signature = inspect.signature(build)
    try:
        signature.bind(**options)
    except TypeError as error:
        takes = ", ".join(signature.parameters) or "none"
        raise ValueError(f"law {name}: {error}; its options: {takes}") from error
    try:
        return build(**options)
    except (ValueError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise ValueError(f"law {name}: building it fails: {one_line(error)}") from error
