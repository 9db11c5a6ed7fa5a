"""Spectra in JCAMP-DX: one block of `(X++(Y..Y))` or `(XY..XY)`, plain or in the compressed forms of ASDF."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from inference.data.preparation.problems import UnusableError

__all__ = ["is_jcamp", "read_jcamp"]

_LABEL = re.compile(r"^##(?P<label>[^=]*)=(?P<value>.*)$")
_MINUS = dict(zip("abcdefghijklmnopqr", [*range(-1, -10, -1)] * 2, strict=True))
_FIRST_DIGITS = {**dict(zip("@ABCDEFGHI%JKLMNOPQR", [*range(10)] * 2, strict=True)), **_MINUS}
_REPEATED = dict(zip("STUVWXYZs", range(1, 10), strict=True))
_TOKEN = re.compile(
    r"\s*(?:(?P<plain>[+-]?(?:\d+\.?\d*|\.\d+)(?:[Ee][+-]\d+)?)|(?P<gap>\?)"
    r"|(?:(?P<squeezed>[@A-Ia-i])|(?P<difference>[%J-Rj-r])|(?P<repeated>[S-Zs]))(?P<digits>\d*))"
)
_MOST_REPEATS = 10**6


def is_jcamp(text: str) -> bool:
    """Whether a text begins as a JCAMP-DX file does."""
    return re.match(r"\s*##\s*(TITLE|JCAMP-?DX)\s*=", text, re.IGNORECASE) is not None


def read_jcamp(text: str) -> tuple[np.ndarray, np.ndarray, str, str]:
    r"""Position, value and the units of both of the spectrum in a file.

    $x_i = \mathtt{FIRSTX} + i\,(\mathtt{LASTX} - \mathtt{FIRSTX}) / (n - 1)$ for `(X++(Y..Y))`, and $y_i$ is the stored
    number times `YFACTOR`; the position that begins each line is compared with its $x_i$.

    Raises:
        UnusableError: Several blocks, another form of the data, or numbers that contradict the header.
    """
    labels, data, form = _records(text)
    read = {"(X++(Y..Y))": _evenly_spaced, "(XY..XY)": _pairs}.get(form.replace(" ", "").upper())
    if read is None:
        raise UnusableError(
            f"JCAMP-DX: expected one block of data (X++(Y..Y)) or (XY..XY), got {form.strip() or 'none'}"
        )
    x, y = read(labels, data)
    return x, y * _number(labels, "YFACTOR", 1.0), labels.get("XUNITS", ""), labels.get("YUNITS", "")


def _pairs(labels: dict[str, str], data: list[tuple[int, str]]) -> tuple[np.ndarray, np.ndarray]:
    numbers = [float(word) for number, line in data for word in _plain(number, line)]
    if len(numbers) % 2 or len(numbers) < 4:
        raise UnusableError(f"JCAMP-DX: expected pairs of numbers, got {len(numbers)} numbers")
    return np.array(numbers[::2]) * _number(labels, "XFACTOR", 1.0), np.array(numbers[1::2])


def _evenly_spaced(labels: dict[str, str], data: list[tuple[int, str]]) -> tuple[np.ndarray, np.ndarray]:
    starts, y = _ordinates(data)
    n_points = _number(labels, "NPOINTS", float(len(y)))
    if n_points != len(y) or len(y) < 2:
        raise UnusableError(f"JCAMP-DX: expected {n_points:g} points as NPOINTS says, and two at least, got {len(y)}")
    x = np.linspace(_number(labels, "FIRSTX"), _number(labels, "LASTX"), len(y))
    factor = _number(labels, "XFACTOR", 1.0)
    for number, place, position in starts:
        if abs(position * factor - x[place]) > abs(x[1] - x[0]) + abs(factor):
            raise UnusableError(
                f"JCAMP-DX: line {number}: expected the position {x[place]:g} there, got {position * factor:g}"
            )
    return x, y


def _records(text: str) -> tuple[dict[str, str], list[tuple[int, str]], str]:
    """Labels and their values, the numbered lines of data, and the form of the data."""
    labels: dict[str, str] = {}
    data: list[tuple[int, str]] = []
    form = ""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.split("$$")[0].strip()
        match = _LABEL.match(stripped)
        if match is None:
            if inside and stripped:
                data.append((number, stripped))
            continue
        label = re.sub(r"[\s_/-]", "", match["label"]).upper()
        inside = label in ("XYDATA", "XYPOINTS", "PEAKTABLE")
        if (inside and form) or label == "NTUPLES":
            raise UnusableError(f"line {number}: expected one block of data in a JCAMP-DX file, got several")
        if inside:
            form = match["value"]
        else:
            labels.setdefault(label, match["value"].strip())
    return labels, data, form


def _number(labels: dict[str, str], label: str, default: float | None = None) -> float:
    if label not in labels and default is not None:
        return default
    try:
        return float(labels.get(label, ""))
    except ValueError:
        raise UnusableError(f"JCAMP-DX: {label}: expected a number, got {labels.get(label)!r}") from None


def _plain(number: int, line: str) -> list[str]:
    words = re.split(r"[\s,;]+", line.strip(" ,;"))
    for word in words:
        if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([Ee][+-]?\d+)?", word):
            raise UnusableError(f"JCAMP-DX: line {number}: {word[:40]!r} is no number")
    return words


def _ordinates(data: list[tuple[int, str]]) -> tuple[list[tuple[int, int, float]], np.ndarray]:
    """For each line its number in the file, the index of its first value, and its position; and all values.

    A line after one that ends in a difference begins with the last value again, as a check.
    """
    starts: list[tuple[int, int, float]] = []
    values: list[float] = []
    ended_in_difference = False
    for number, line in data:
        position, found, differs = _decoded(number, line)
        if ended_in_difference:
            if values[-1] != found[0]:
                raise UnusableError(
                    f"JCAMP-DX: line {number}: expected the last value of the line above again, {values[-1]:g}, "
                    f"got {found[0]:g}"
                )
            starts.append((number, len(values) - 1, position))
            found = found[1:]
        else:
            starts.append((number, len(values), position))
        values += found
        ended_in_difference = differs
    return starts, np.array(values)


def _decoded(number: int, line: str) -> tuple[float, list[float], bool]:
    """Position, values, and whether the last of these was given as a difference."""
    tokens = list(_tokens(number, re.sub(r"[,;]", " ", line).rstrip()))
    if len(tokens) < 2 or not tokens[0]["plain"]:
        raise UnusableError(f"JCAMP-DX: line {number}: expected a position and values, got {line[:40]!r}")
    values: list[float] = []
    step: float | None = None
    for token in tokens[1:]:
        if not values and (token["difference"] or token["repeated"]):
            raise UnusableError(f"JCAMP-DX: line {number}: expected a value before {token[0].strip()!r}, got none")
        if token["repeated"]:
            times = int(f"{_REPEATED[token['repeated']]}{token['digits']}") - 1
            values += [values[-1] + (step or 0.0) * i for i in range(1, min(times, _MOST_REPEATS) + 1)]
        elif token["difference"]:
            step = float(f"{_FIRST_DIGITS[token['difference']]}{token['digits']}")
            values.append(values[-1] + step)
        else:
            step = None
            squeezed = token["squeezed"] and f"{_FIRST_DIGITS[token['squeezed']]}{token['digits']}"
            values.append(float(squeezed or token["plain"] or "nan"))
    return float(tokens[0]["plain"]), values, step is not None


def _tokens(number: int, line: str) -> Iterator[re.Match[str]]:
    place = 0
    while place < len(line):
        match = _TOKEN.match(line, place)
        if match is None:
            raise UnusableError(f"JCAMP-DX: line {number}: {line[place : place + 40].strip()!r} is no number")
        yield match
        place = match.end()
