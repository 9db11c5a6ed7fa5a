"""Components of a user's own: which of them a run has, and errors of their code told in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from inference.results.shortage import is_out_of_memory
from inference.training.components import Components
from inference.training.config import FitConfig
from inference.training.divergence import DivergedError
from inference.training.own_code import own_names
from models.user_code import one_line

__all__ = ["OwnPart", "is_of_user", "own_parts", "telling"]

_SHIPPED = ("models", "guides", "inference")


class OwnPart(NamedTuple):
    """A component of a user's own.

    Attributes:
        setting: The setting that it takes the place of, for example `guide.fusion`.
        subject: Beginning of messages: `guide.fusion mylab:Mine`, or `components.fusion`.
        module: Module of the class or function; that of an object may be a shipped one.
        name: Name of the class or function.
    """

    setting: str
    subject: str
    module: str
    name: str


def own_parts(config: FitConfig, components: Components) -> tuple[OwnPart, ...]:
    """The components of a user's own: those that settings name, and all objects.

    An object of a shipped class is one, too: it was made by hand, of another size than this fit needs, say.
    """
    named = [OwnPart(s, f"{s} {value}", *value.split(":", 1)) for s, value in own_names(config.to_dict()).items()]
    return (*named, *(_of_object(setting, part) for setting, part in components.by_setting().items()))


def _of_object(setting: str, given: Any) -> OwnPart:
    made_of = given if hasattr(given, "__name__") else type(given)
    modality = setting.removeprefix("modality.").removesuffix(".encoder")
    place = f"encoders {modality}" if setting.startswith("modality.") else setting.partition(".")[2]
    return OwnPart(setting, f"components.{place}", made_of.__module__, made_of.__name__)


@contextmanager
def telling(parts: Sequence[OwnPart]) -> Iterator[None]:
    """Errors that come out of a user's own code are one line that names the setting, function and line of the file.

    Numbers that are not finite, lack of memory, and Ctrl-C pass, as do errors that come from elsewhere.

    Raises:
        ValueError: Such an error.
    """
    try:
        yield
    except (KeyboardInterrupt, MemoryError, DivergedError):
        raise
    except BaseException as error:
        found = _culprit(parts, error.__traceback__)
        if found is None or is_out_of_memory(error):
            raise
        part, frame, line = found
        place = f"{frame.f_code.co_name}() fails in line {line} of {Path(frame.f_code.co_filename).name}"
        raise ValueError(f"{part.subject}: {place}: {one_line(error)}") from error


def is_of_user(parts: Sequence[OwnPart], error: BaseException) -> bool:
    """Whether an error comes out of a user's own code."""
    return _culprit(parts, error.__traceback__) is not None


def _culprit(parts: Sequence[OwnPart], traceback: TracebackType | None) -> tuple[OwnPart, FrameType, int] | None:
    """The innermost frame of a user's module, with the component whose class it is in, or else one of that module."""
    written = [part for part in parts if part.module.partition(".")[0] not in _SHIPPED]
    for frame, line in reversed(list(walk_tb(traceback))):
        there = [part for part in written if part.module == frame.f_globals.get("__name__")]
        if there:
            owner = type(frame.f_locals.get("self")).__name__
            return next((part for part in there if part.name in (owner, frame.f_code.co_name)), there[0]), frame, line
    return None
