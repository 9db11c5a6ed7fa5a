"""Which units the files of one kind of curve agree on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from inference.data.preparation.curve_files import Curve
from inference.data.preparation.headers import Header
from inference.data.preparation.problems import UnusableError

__all__ = ["agreed_headers", "check_units"]

_Headers = tuple[Header, Header]


def agreed_headers(curves: Collection[Curve]) -> _Headers:
    """Headers of position and value: the units that fit most files, the commonest names.

    Units fit a file that has them or has none.
    """
    pairs = Counter((curve.x_header.units, curve.y_header.units) for curve in curves)
    units = max(pairs, key=lambda pair: sum(count for other, count in pairs.items() if _fits(other, pair)))
    names = (_commonest(c.x_header.name for c in curves), _commonest(c.y_header.name for c in curves))
    return Header(names[0], units[0]), Header(names[1], units[1])


def check_units(curve: Curve, agreed: _Headers) -> None:
    """Refuse a curve whose units are others: nothing is converted.

    Raises:
        UnusableError: It has other units.
    """
    for own, common in zip((curve.x_header, curve.y_header), agreed, strict=True):
        if own.units and own.units != common.units:
            raise UnusableError(f"in {own.units!r} where most files have {common.units!r}; convert it")


def _fits(own: tuple[str, str], units: tuple[str, str]) -> bool:
    return all(one in ("", other) for one, other in zip(own, units, strict=True))


def _commonest(names: Iterable[str]) -> str:
    counts = Counter(name for name in names if name)
    return counts.most_common(1)[0][0] if counts else ""
