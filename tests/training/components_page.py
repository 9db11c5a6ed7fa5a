"""The part of docs/components.md that is made from the checks of the program: what does not go together, and why.

Run this file to write it anew: `python tests/training/components_page.py`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from component_levels import LEVELS
from component_rows import illegal_pairs

__all__ = ["PAGE", "made_anew", "values_by_setting"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "components.md"

_BEGIN, _END = "<!-- made by tests/training/components_page.py -->\n", "<!-- end -->\n"
_ROW = re.compile(r"\| `(?P<value>[^`]+)`[^|]*\|")


def made_anew(page: str) -> str:
    """The page with its table of what does not go together as it is now."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return before + _BEGIN + _table() + _END + after


def values_by_setting(page: str) -> dict[str, list[str]]:
    """The values that the page lists, by the setting in the head of their table."""
    found: dict[str, list[str]] = {}
    before = rows = None
    for line in page.splitlines():
        row = _ROW.match(line)
        if row is not None and not (before or "").startswith("|"):
            rows = found.setdefault(row["value"], [])
        elif row is not None and rows is not None:
            rows.append(row["value"])
        elif not line.startswith("|-"):
            rows = None
        before = line
    return found


def _table() -> str:
    lines = ["| these | with these | why not |", "|---|---|---|"]
    lines += [f"| {_words(one)} | {_words(other)} | {why} |" for one, other, why in _merged()]
    return "\n".join(lines) + "\n"


def _words(levels: tuple[str, tuple[str, ...]]) -> str:
    factor, values = levels
    if factor == "starts":
        return "`--restart_mode` batched"
    return f"{_FACTORS.get(factor, f'`{factor}`')} {', '.join(values)}"


_FACTORS = {"decoders": "decoder", "encoders": "encoder", "mask": "`mask`,", "observe": "`observe`, labels for"}


def _merged() -> list[tuple[tuple[str, tuple[str, ...]], tuple[str, tuple[str, ...]], str]]:
    """Refused pairs of two factors with one reason, those of several values together."""
    partners: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for pair, message in illegal_pairs().items():
        (one, a), (other, b) = sorted(pair, key=lambda level: list(LEVELS).index(level[0]))
        partners[one, other, _reason(message, a), a].append(b)
    merged: dict[tuple[str, str, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (one, other, why, a), values in partners.items():
        merged[one, other, why, tuple(values)].append(a)
    return [((one, tuple(a)), (other, values), why) for (one, other, why, values), a in merged.items()]


def _reason(message: str, value: str) -> str:
    """Why, without what was got and without the value and the modality that it was seen at."""
    if " since " in message:
        why = message.partition(" since ")[2].partition(", got ")[0]
        why = re.sub(rf" {re.escape(value)}(?= (?!law))", "", why)
        return re.sub(r"\b(picture|curve)\b", "NAME", why, count=1)
    _, expected, advice = re.split(r": expected |; ", message, maxsplit=2)
    is_bare = advice.startswith(("leave", "set", "use", "let", "say"))
    return f"expected {expected.partition(', got ')[0]}; {advice}" if is_bare else advice


if __name__ == "__main__":
    PAGE.write_text(made_anew(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
