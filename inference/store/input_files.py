"""Files that are read: regular ones only, of a size that can be held, and inside a folder where that is asked for."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import stat
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from inference.store.files import FORMAT_KEY, check_format

__all__ = [
    "MOST_TEXT",
    "NumberLoader",
    "UnusableFileError",
    "YamlError",
    "check_memory",
    "check_regular",
    "open_regular",
    "parse_yaml",
    "read_bytes",
    "read_json",
    "read_text",
    "read_yaml",
    "reason_of",
    "to_yaml",
]


MOST_TEXT = 2**26
"""Bytes of a text file at most: 64 MiB."""

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class UnusableFileError(OSError):
    """A file that is not opened, for what it is; `strerror` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EINVAL, reason)

    def __str__(self) -> str:
        return str(self.strerror)


def check_regular(path: Path | str, within: Path | str | None = None, most: int | None = None) -> None:
    """Refuse what is no regular file, before somebody opens it: opening a pipe waits for a writer.

    Args:
        path: The file; links are followed.
        within: A folder in which the file has to lie when links are followed; None: anywhere.
        most: Bytes that it may have at most; None: any number.

    Raises:
        OSError: It is not there (`FileNotFoundError`), is a folder (`IsADirectoryError`), or cannot be looked at.
        UnusableFileError: It is a pipe, socket or device, lies outside, or is too large.
    """
    _check_kind(os.stat(path), most)
    if within is not None and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(within)):
        raise UnusableFileError("it is a link to a file outside of the folder; put a copy of the file in its place")


def _check_kind(found: os.stat_result, most: int | None) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if kind != stat.S_IFREG:
        raise UnusableFileError(f"it is {_KINDS.get(kind, 'something else')}, no regular file")
    if most is not None and found.st_size > most:
        raise UnusableFileError(f"it has {found.st_size} bytes, more than the {most} that such a file may have")


def open_regular(path: Path | str, within: Path | str | None = None, most: int | None = None) -> BinaryIO:
    """Open a file for reading; arguments and errors are those of `check_regular`."""
    check_regular(path, within, most)
    # Without O_NONBLOCK a pipe that took the place of the file meanwhile would be waited for.
    file = open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)), "rb")  # noqa: SIM115
    try:
        _check_kind(os.fstat(file.fileno()), most)
    except BaseException:
        file.close()
        raise
    return file


def read_bytes(path: Path | str, within: Path | str | None = None, most: int | None = None) -> bytes:
    """Content of a file; arguments and errors are those of `check_regular`."""
    with open_regular(path, within, most) as file:
        return file.read()


def read_text(path: Path | str, within: Path | str | None = None, encoding: str = "utf-8") -> str:
    """Content of a text file of at most `MOST_TEXT` bytes, with line feeds at the ends of its lines.

    Raises:
        OSError: As `check_regular`.
        UnicodeDecodeError: It is in another encoding, or no text.
    """
    text = read_bytes(path, within, MOST_TEXT).decode(encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_json(path: Path | str, within: Path | str | None = None) -> Any:
    """Value in a JSON file; of a mapping, without the version of its format, which is checked.

    Raises:
        OSError: As `check_regular`.
        ValueError: It is no JSON, or is nested too deeply.
        FormatError: A newer version of the program wrote it.
    """
    try:
        content = json.loads(read_text(path, within))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if isinstance(content, Mapping):
        content = dict(content)
        check_format(path, content.pop(FORMAT_KEY, None))
    return content


def check_memory(n_bytes: int) -> None:
    """Refuse values that the memory of this process cannot hold, before they are read.

    Raises:
        UnusableFileError: They take more than is left.
    """
    left = _memory_left()
    if left is not None and n_bytes > left:
        raise UnusableFileError(
            f"its values take {_gibibytes(n_bytes)}, more than the {_gibibytes(left)} of memory that are left"
        )


def _gibibytes(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.3g} GiB"


def _memory_left() -> int | None:
    """Bytes that the machine, the control group and the limits of the process leave; None where none is known."""
    known = []
    with suppress(OSError, ValueError, LookupError):
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        known.append(int(lines["MemAvailable"].split()[0]) * 1024)
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        known.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    with suppress(OSError, ValueError, IndexError):
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        known += [limit - used] if limit != resource.RLIM_INFINITY else []
    return min(known, default=None)


def reason_of(error: Exception) -> str:
    """Why a file cannot be read, in a few words on one line, for the brackets of a message."""
    if isinstance(error, UnicodeDecodeError):
        return "it is no text in UTF-8"
    return " ".join(str(getattr(error, "strerror", None) or error or type(error).__name__).split())


# YAML as settings are written in it: plain values, without what makes a small text large or a value another one.


_MOST_BYTES = 2**22
_MOST_DEPTH = 50

_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(ValueError):
    """A text that is no plain YAML; the message says where and why."""


class _PlainLoader(_SafeLoader):
    """Names are text and stand once; numbers and words are those of YAML 1.2."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        found: dict[Hashable, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _error("expected a name before the colon, got a list or a mapping", key.start_mark)
            if key.value in found:
                raise _error(f"expected every name once, got {key.value!r} twice", key.start_mark)
            found[key.value] = self.construct_object(value, deep=deep)
        return found


class NumberLoader(_PlainLoader):
    """The same for a value that is known to be no text: `yes`, `no`, `on` and `off` are true and false."""


class _Dumper(yaml.SafeDumper):
    """Quotes text that is a number here and was none in YAML 1.1, as 1e3."""


_WORDS = r"^(?:true|True|TRUE|false|False|FALSE)$"
_MORE_WORDS = r"^(?:true|True|TRUE|yes|Yes|YES|on|On|ON|false|False|FALSE|no|No|NO|off|Off|OFF)$"
_NULL = r"^(?:~|null|Null|NULL|)$"
_INTEGER = r"^[-+]?(?:0|[1-9][0-9]*)$"
_FLOAT = (
    r"^(?:[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)


def _resolve(kind: Any, tag: str, form: str, first: Sequence[str]) -> None:
    kind.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(form), list(first))


# YAML 1.1, which PyYAML reads, has 1:30 for 90, 010 for 8, 1_000 for 1000, a date for 2024-01-01, and false for no.
for _kind, _words in ((_PlainLoader, _WORDS), (NumberLoader, _MORE_WORDS)):
    _kind.yaml_implicit_resolvers = {}
    _resolve(_kind, "bool", _words, "tTfFyYnNoO")
    _resolve(_kind, "null", _NULL, ["~", "n", "N", ""])
    _resolve(_kind, "int", _INTEGER, "-+0123456789")
    _resolve(_kind, "float", _FLOAT, "-+0123456789.")
_resolve(_Dumper, "float", _FLOAT, "-+0123456789.")
_PlainLoader.add_constructor("tag:yaml.org,2002:map", lambda loader, node: loader.construct_mapping(node, deep=True))


def read_yaml(path: Path | str, within: Path | str | None = None) -> Any:
    """Value in a YAML or JSON file of at most 4 MiB.

    Args:
        path: The file.
        within: A folder in which it has to lie, or None.

    Raises:
        OSError: It cannot be read, is no regular file, or too large.
        UnicodeDecodeError: It is no text.
        YamlError: As `parse_yaml`.
    """
    return parse_yaml(read_bytes(path, within, _MOST_BYTES).decode("utf-8"))


def parse_yaml(text: str) -> Any:
    """Value of a text in YAML or JSON.

    It is a tree of mappings with names that stand once, lists, text, numbers, true, false and null: no aliases, tags or
    merges. `yes`, `no`, `on`, `off`, dates and `1:30` are text, `010` and `1_000` too.

    Raises:
        YamlError: The text is something else, or is nested deeper than 50 levels; the message says in which line.
    """
    try:
        _check_constructs(text)
        return yaml.load(text, _PlainLoader)
    except yaml.MarkedYAMLError as error:
        where = "" if error.problem_mark is None else f"line {error.problem_mark.line + 1}: "
        raise YamlError(f"{where}{error.problem}") from error
    except (yaml.YAMLError, UnicodeEncodeError, RecursionError) as error:
        raise YamlError(" ".join(str(error).split())) from error


def to_yaml(value: Any) -> str:
    """A text from which `parse_yaml` makes the same value of strict JSON."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False)


def _check_constructs(text: str) -> None:
    """Refuse what grows when it is put together, before it is."""
    depth = 0
    for event in yaml.parse(text, _SafeLoader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _error("expected values that are written out, got an anchor (&) or alias (*)", event.start_mark)
        if getattr(event, "tag", None) is not None:
            raise _error(f"expected plain values, got the tag {event.tag}", event.start_mark)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MOST_DEPTH:
            raise _error(f"expected at most {_MOST_DEPTH} levels, got more", event.start_mark)


def _error(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
