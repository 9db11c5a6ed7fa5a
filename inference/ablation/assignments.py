"""`FLAG=VALUE` and `FLAG=VALUE,VALUE`: settings of a fit as they stand in the flags of an ablation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

__all__ = [
    "OF_ONE_FIT",
    "OF_THE_ABLATION",
    "as_words",
    "assignment",
    "is_for_all_modalities",
    "refuse_flag",
    "spread_over_modalities",
    "value_text",
    "varied",
]

_EVERY_MODALITY = "modality.*."
_SWITCHES = ("paper_settings",)

OF_ONE_FIT = {
    "seed": "give --seeds",
    "resume": "the same command again goes on with what is unfinished",
    "stop_after": "Ctrl-C stops, and the same command again goes on",
    "print_config": "every run folder holds its config.yaml",
}
"""Flags of `inference.svi` that make no sense for several fits, and what does."""

OF_THE_ABLATION = dict.fromkeys(
    ("output_dir", "json", "quiet", "dry_run", "force", "help"), "give it to the ablation itself"
)
"""Flags of `inference.svi` that the ablation has as well: no setting of a fit."""


def refuse_flag(name: str) -> NoReturn:
    """Refuse a flag that distinguishes no cell.

    Raises:
        ValueError: Always; it says what to do.
    """
    advice = {**OF_ONE_FIT, **OF_THE_ABLATION}[name]
    raise ValueError(f"{name}: expected no such flag, since there are several fits; {advice}")


def assignment(text: str, flag: str = "set") -> tuple[str, str]:
    """Name and value of `training.epochs=5`.

    Args:
        text: The text.
        flag: Flag that it stands behind, for messages.

    Raises:
        ValueError: There is no `=`, or nothing before it.

    >>> assignment("modality.image.decoder.sizes=[64,32]")
    ('modality.image.decoder.sizes', '[64,32]')
    """
    name, equals, value = text.partition("=")
    name = name.strip().removeprefix("--")
    if not name or not equals:
        raise ValueError(f"{flag}: expected FLAG=VALUE with a flag of inference.svi, got {text!r}; write it so")
    return name, value.strip()


def varied(text: str) -> tuple[str, tuple[str, ...]]:
    """Name and values of `model.prior=dag,mixture`.

    Commas within brackets do not part values; values that hold commas are parted by semicolons: `nodes=2,2;4`.

    Raises:
        ValueError: No `=`, no value, or one that is given twice.

    >>> varied("modality.image.decoder.sizes=[64,32],[128]")
    ('modality.image.decoder.sizes', ('[64,32]', '[128]'))
    """
    name, rest = assignment(text, "vary")
    parts = rest.split(";") if ";" in rest else _outside_brackets(rest)
    values = tuple(part.strip() for part in parts)
    if not all(values) or len(set(values)) < len(values):
        raise ValueError(
            f"vary: expected different values of {name} with commas between them, got {rest!r}; "
            "part values that hold commas by semicolons"
        )
    return name, values


def _outside_brackets(text: str) -> list[str]:
    """Parts between commas; what stands in brackets or braces is one part."""
    depths, depth = [], 0
    for character in text:
        depth += (character in "[{(") - (character in "]})")
        depths.append(depth)
    cuts = [i for i, character in enumerate(text) if character == "," and depths[i] <= 0]
    return [text[start + 1 : end] for start, end in zip([-1, *cuts], [*cuts, len(text)], strict=True)]


def value_text(value: Any) -> str:
    """A value of a YAML file as it stands on a command line: `true`, `null`, `[64, 32]`.

    >>> value_text(True), value_text([64, 32]), value_text("dag")
    ('true', '[64, 32]', 'dag')
    """
    return value if isinstance(value, str) else json.dumps(value)


def is_for_all_modalities(name: str) -> bool:
    """Whether a flag is one of `modality.*.REST`."""
    return name.startswith(_EVERY_MODALITY)


def spread_over_modalities(flags: Mapping[str, str], modalities: Sequence[str]) -> dict[str, str]:
    """The flags with `modality.*.REST` written out for every modality.

    What is said of a single one goes over what is said of all.

    Args:
        flags: Values by name.
        modalities: Words of the modalities, as in flags.
    """
    found: dict[str, str] = {}
    for name, value in flags.items():
        if is_for_all_modalities(name):
            rest = name.removeprefix(_EVERY_MODALITY)
            found |= {f"modality.{word}.{rest}": value for word in modalities}
    return found | {name: value for name, value in flags.items() if not is_for_all_modalities(name)}


def as_words(flags: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The settings as words of a command line; a switch stands alone, or not at all."""
    return tuple(word for name, value in flags for word in _word(name, value))


def _word(name: str, value: str) -> tuple[str, ...]:
    if name not in _SWITCHES:
        return (f"--{name}={value}",)
    if not re.fullmatch("true|false", value):
        raise ValueError(f"{name}: expected true or false, got {value!r}; it is a switch")
    return (f"--{name}",) if value == "true" else ()
