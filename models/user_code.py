"""Objects that a user names as `module:name`, from a file of their own: found, called, and refused in one line.

Names that the user types are the user's word. Names that stand in files, of a run that somebody else may have made, are
imported only where the user allows it, or has run the same file before (`on_word_of_files`).
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from causalpima.checkout import FOLDERS

__all__ = [
    "UserKind",
    "call_user_code",
    "import_module",
    "named_object",
    "names_user_code",
    "on_word_of_files",
    "one_line",
    "remember_module",
]

_OTHER_PREFIXES = ("fixed", "posthoc")

_ALLOWED = frozenset({"*"})
_typed: ContextVar[frozenset[str] | None] = ContextVar("modules that the user typed", default=None)
"""None: every name is the user's own word; `_ALLOWED`: files may name code, too."""


class UserKind(NamedTuple):
    """What a name is expected to stand for.

    Attributes:
        form: `a class`, or `a class or function`.
        holds: Whether an object of the module is one.
        expected: In words, for example `a subclass of causalpima.PhysicsLaw`.
        plural: What those that a module has are called in messages.
        bases: What a class has to be a subclass of; those of its methods that are missing are named.
    """

    form: str
    holds: Callable[[object], bool]
    expected: str
    plural: str
    bases: tuple[type, ...] = ()


def names_user_code(name: str) -> bool:
    """Whether a name is `module:name`; `fixed:FILE` and `posthoc:METHOD` of a graph are not."""
    module, colon, _ = name.partition(":")
    return bool(colon) and module not in _OTHER_PREFIXES


def named_object(subject: str, name: str, kind: UserKind) -> Any:
    """The object that a user named.

    Args:
        subject: Beginning of messages, for example `law mylab:Relaxation`.
        name: `module:name`; the module is found on Python's path or from the current directory.
        kind: What it is expected to be.

    Raises:
        ValueError: No such module or object, an import that fails, an object of another kind, or a class that lacks
            methods.
    """
    module_name, _, object_name = name.partition(":")
    module = import_module(subject, module_name)
    found = getattr(module, object_name, None)
    if found is None:
        known = ", ".join(key for key, value in vars(module).items() if kind.holds(value) and _is_of(module, value))
        told = f"its {kind.plural}: {known or 'none'}"
        raise ValueError(f"{subject}: expected {kind.form} of {module_name}, got {object_name!r}; {told}")
    _check_methods(subject, found, kind.bases)
    if not kind.holds(found):
        raise ValueError(f"{subject}: expected {kind.expected}, got {found!r}")
    return found


def _check_methods(subject: str, found: object, bases: tuple[type, ...]) -> None:
    """Refuse a class of the right kind that is unfinished; the kinds themselves are told as being no one's own."""
    if inspect.isclass(found) and found not in bases and issubclass(found, bases) and inspect.isabstract(found):
        missing = ", ".join(sorted(vars(found)["__abstractmethods__"]))
        raise ValueError(f"{subject}: expected a class with all methods, got one without {missing}; write them")


def _is_of(module: ModuleType, value: object) -> bool:
    """Not what it imports."""
    is_definition = inspect.isclass(value) or inspect.isfunction(value)
    return not is_definition or getattr(value, "__module__", None) == module.__name__


def import_module(subject: str, module_name: str) -> ModuleType:
    """Import a module; the current directory is searched last.

    Args:
        subject: Beginning of messages.
        module_name: Its dotted name.

    Raises:
        ValueError: There is none, its import fails, or only files name it and the user did not allow it.
    """
    directory = os.getcwd()
    if not module_name:
        raise ValueError(f"{subject}: expected a module before the colon, got none; write module:Class")
    _check_allowed(subject, module_name)
    sys.path.append(directory)
    try:
        return importlib.import_module(_shipped(module_name) or module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ValueError(f"{subject}: {module_name} needs a module that is not there: {error.name}") from error
        raise ValueError(
            f"{subject}: expected a module {module_name} on Python's path or in {directory}, got none; "
            f"write module:Class without .py and run from the folder of the file"
        ) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, too: a user's module must not end the command in silence
        raise ValueError(f"{subject}: importing {module_name} fails: {one_line(error)}") from error
    finally:
        sys.path.remove(directory)


@contextmanager
def on_word_of_files(allowed: bool, typed: Collection[str] = ()) -> Iterator[None]:
    """Meanwhile modules that files name are imported only if that is allowed, or the user ran the same file before.

    Args:
        allowed: Whether the user allowed it; what was allowed further out stays so.
        typed: Modules that the user typed, which are imported as ever.
    """
    is_allowed = allowed or _typed.get() is _ALLOWED
    token = _typed.set(_ALLOWED if is_allowed else frozenset(typed))
    try:
        yield
    finally:
        _typed.reset(token)


def _shipped(module_name: str) -> str:
    """The full name of a module of this program, which older files name without the package; empty of any other."""
    short = module_name.removeprefix("causalpima.")
    try:
        is_there = short.partition(".")[0] in FOLDERS and importlib.util.find_spec(f"causalpima.{short}")
        return f"causalpima.{short}" if is_there else ""
    except ModuleNotFoundError:  # nor is there a package of which it could be a part
        return ""


def _check_allowed(subject: str, module_name: str) -> None:
    typed = _typed.get()
    if typed is None or typed is _ALLOWED or module_name in typed or _shipped(module_name):
        return
    file = _module_file(module_name)
    note = None if file is None else _note(file)
    if note is None or not note.is_file():
        raise ValueError(
            f"{subject}: expected your permission to run the code of {module_name} "
            f"({file or 'a module that is not found'}), which a file names and you did not, got none; "
            "read that code, then add --allow_code (in Python allow_code=True)"
        )


def remember_module(module_name: str) -> None:
    """Remember that this user runs this file, so that runs which name it are read without asking.

    What is remembered are path and content, in a folder of the user's own; where that cannot be written, nothing is.
    """
    file = _module_file(module_name)
    with suppress(OSError):
        if file is not None and (note := _note(file)) is not None and not note.is_file():
            note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            note.write_text(f"{file}\n", encoding="utf-8")


def _module_file(module_name: str) -> Path | None:
    """The file that an import of a module would run, without an import; None where there is none."""
    search: list[str] | None = [*sys.path, os.getcwd()]
    spec = None
    for depth in range(module_name.count(".") + 1):
        if search is None:
            return None
        spec = PathFinder.find_spec(".".join(module_name.split(".")[: depth + 1]), search)
        if spec is None:
            return None
        search = None if spec.submodule_search_locations is None else list(spec.submodule_search_locations)
    return None if spec is None or spec.origin is None else Path(os.path.realpath(spec.origin))


def _note(file: Path) -> Path | None:
    """The file which is there if this user ran this very code from this place; None if the code cannot be read."""
    try:
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    except (OSError, RuntimeError):
        return None
    return home / "causalpima" / "code" / hashlib.sha256(f"{file}\n{content}".encode()).hexdigest()


def call_user_code(
    subject: str,
    make: Callable[..., Any],
    *arguments: Any,
    options: Mapping[str, Any] | None = None,
    names: Sequence[str] = (),
) -> Any:
    """Call a class or function of the user's; what goes wrong in there is said in one line.

    Args:
        subject: Beginning of messages.
        make: The class or function.
        arguments: What it is called with, by position.
        options: The same by name.
        names: What the arguments are called in messages, one each.

    Raises:
        ValueError: It does not take them, or it fails.
    """
    options = dict(options or {})
    signature = inspect.signature(make)
    try:
        signature.bind(*arguments, **options)
    except TypeError as error:
        word = "arguments" if arguments else "options"
        takes = ", ".join(signature.parameters) or "none"
        passed = f"it is called with {len(names)} ({', '.join(names)}); " if names else ""
        raise ValueError(f"{subject}: {error}; {passed}its {word}: {takes}") from error
    try:
        return make(*arguments, **options)
    except (ValueError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise ValueError(f"{subject}: building it fails: {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """Kind and message of an error of the user's own code."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
