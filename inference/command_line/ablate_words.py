"""The two kinds of flags of `python -m inference.ablate`: its own, and those of `inference.svi` for all fits."""

from __future__ import annotations

from collections.abc import Sequence

from inference.ablation.assignments import OF_ONE_FIT, refuse_flag

__all__ = ["split_words"]

_REPEATED = ("vary", "set", "metrics", "sweep")
_VALUES = ("arms", "baseline", "seeds", "jobs", "json", "output_dir", "trials", "metric")
_SWITCHES = ("table_only", "dry_run", "quiet", "force", "help")


def split_words(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of the ablation, each flag in one word with its value, and those of every fit.

    Args:
        argv: The command line. Several values may follow `--vary`, `--set`, `--metrics` and `--sweep`.

    Raises:
        ValueError: A flag of `inference.svi` that makes no sense for several fits.

    >>> split_words(["--dataset", "circles", "--vary", "a=1,2", "b=3,4", "--quiet"])
    (['--vary=a=1,2', '--vary=b=3,4', '--quiet'], ['--dataset', 'circles'])
    """
    own: list[str] = []
    fits: list[str] = []
    for flag, values in _groups(argv):
        name, equals, _ = flag.removeprefix("--").partition("=")
        if name in OF_ONE_FIT:
            refuse_flag(name)
        if name not in (*_REPEATED, *_VALUES, *_SWITCHES) and flag != "-h":
            fits += [flag, *values]
        elif name in _REPEATED and values and not equals:
            own += [f"{flag}={value}" for value in values]
        else:
            own += [f"{flag}={values[0]}", *values[1:]] if values and not equals else [flag, *values]
    return own, fits


def _groups(argv: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Each word that begins with a dash and what follows it; a negative number is a value."""
    groups: list[tuple[str, list[str]]] = []
    for word in argv:
        if not groups or word.startswith("--") or word == "-h":
            groups.append((word, []))
        else:
            groups[-1][1].append(word)
    return groups
