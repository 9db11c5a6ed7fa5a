"""YAML as settings are written in it: plain values, without what makes a small text large or a value another one."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import yaml

from causalpima.inference.store.input_files import read_bytes

__all__ = ["NumberLoader", "YamlError", "parse_yaml", "read_yaml", "to_yaml"]

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
