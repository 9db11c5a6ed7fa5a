"""Names of components that there are not: a mistake in the command line, and no outcome of an ablation.

Components are no closed choice, since a user may name code of his own, so that the parser takes every word for one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from guides.encoders import ENCODERS
from guides.fusion import FUSIONS
from inference.training.graph_choice import GRAPHS
from inference.training.priors import PRIORS
from models.decoders.bodies import NETWORKS
from models.decoders.physics import LAWS
from models.user_code import names_user_code

__all__ = ["unknown_component"]

_TABLES: Sequence[tuple[str, Collection[str], str]] = (
    ("model.prior", PRIORS, "module:Class"),
    ("model.graph", GRAPHS, "fixed:FILE or module:Class"),
    ("guide.fusion", FUSIONS, "module:Class"),
    ("modality.*.encoder.kind", ENCODERS, "module:function"),
    ("modality.*.decoder.kind", (*NETWORKS, *LAWS), "module:Class"),
)
_FILE = "fixed:"


def unknown_component(words: Sequence[str]) -> str | None:
    """What is said of the first word that names a component which there is not; None where all are there.

    Args:
        words: `--FLAG=VALUE`, of `inference.svi`; others are not looked at.
    """
    for word in words:
        flag, equals, value = word.removeprefix("--").partition("=")
        for pattern, names, own in _TABLES:
            if equals and fnmatchcase(flag, pattern) and not _is_known(value, names):
                return _told(flag, value, names, own)
    return None


def _is_known(value: str, names: Collection[str]) -> bool:
    return value in names or names_user_code(value) or value.startswith(_FILE)


def _told(flag: str, value: str, names: Collection[str], own: str) -> str:
    alike = get_close_matches(value, names)
    suggestion = f"; did you mean {', '.join(alike)}?" if alike else ""
    return f"{flag}: expected {', '.join(names)}, or {own}, got {value}{suggestion}"
