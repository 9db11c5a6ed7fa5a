"""Which variables are measurements, masks of them, known factors, groups, covariates and environments."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from causalpima.inference.data.multimodal import MASK_SUFFIX, ModalityKind, Variable

__all__ = [
    "OBSERVATIONAL",
    "ROWS_PER_CELL",
    "UNKNOWN",
    "Categories",
    "Environment",
    "ReadOptions",
    "Role",
    "Roles",
    "assign_roles",
    "check_levels",
    "check_names",
    "gap_like_levels",
    "is_number",
    "joint_groups",
    "observational_rows",
    "to_categories",
    "to_environment",
]


# What of a file is read, and as what.


_NO_LISTS = ("sample_dim", "in_memory", "observational")


@dataclass(frozen=True)
class ReadOptions:
    """How variables become samples. A variable that is named here has the roles given here, not those of its file.

    Attributes:
        sample_dim: Dimension that counts the samples; default `sample` if there is one, else the first of the first
            variable.
        modalities: Variables to learn from; default all that have no other role.
        labels: Known factors, for evaluation only. Where some are named, they alone are scored against; those that
            only their file calls labels still take part in the split.
        observe: Labels that tell the outcomes of nodes; where others are named, these are scored against, too.
        groups: Specimens or batches whose samples stay on one side of every split.
        covariates: Nuisances (batch, instrument) that decoders see.
        environment: The variable that tells in which environment a sample was taken (one name at most).
        observational: Its level without intervention; default `observational`.
        kinds: Per modality `image`, `curve` or `vector`; default by attribute and shape.
        in_memory: `no` leaves modalities of a netCDF or zarr file on disk (unless they have one number per sample), and
            reads samples when they are needed; `auto` does so for files with more than 2 GiB of values.

    Raises:
        ValueError: A name that stands twice, or a modality with another role.
    """

    sample_dim: str | None = None
    modalities: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    observe: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    observational: str | None = None
    kinds: Mapping[str, ModalityKind] = field(default_factory=dict)
    in_memory: Literal["auto", "yes", "no"] = "auto"

    def __post_init__(self) -> None:
        for part in _LISTS:
            object.__setattr__(self, part, _names(part, getattr(self, part)))
        object.__setattr__(self, "kinds", dict(self.kinds))
        object.__setattr__(self, "in_memory", _choice(self.in_memory))
        if len(self.environment) > 1:
            raise ValueError(f"environment: expected one variable, got {', '.join(self.environment)}; join them to one")
        both = set(self.modalities) & {name for part in _LISTS if part != "modalities" for name in self.named[part]}
        if both:
            raise ValueError(
                f"modalities: expected names without another role, got {', '.join(sorted(both))} also as label, "
                "group, covariate or environment; name each once"
            )

    @property
    def is_default(self) -> bool:
        """Whether nothing was asked for."""
        return self == ReadOptions()

    @property
    def scored(self) -> tuple[str, ...]:
        """The known factors that alone are scored against; none: all."""
        return tuple(dict.fromkeys((*self.labels, *self.observe))) if self.labels else ()

    @property
    def named(self) -> dict[str, tuple[str, ...]]:
        """The names in each list of variables, by the name of the list."""
        lists = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in _NO_LISTS}
        return {name: tuple(names) for name, names in lists.items()}


def _choice(in_memory: Any) -> Any:
    """One of the choices; YAML reads `yes` and `no` as true and false."""
    choice = {True: "yes", False: "no"}.get(in_memory, in_memory) if isinstance(in_memory, bool) else in_memory
    if choice not in ("auto", "yes", "no"):
        raise ValueError(f"in_memory: expected one of auto, yes, no, got {in_memory!r}")
    return choice


def _names(part: str, names: object) -> tuple[str, ...]:
    words = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, list | tuple) else None
    if words is None or not all(isinstance(word, str) and word for word in words):
        raise ValueError(f"{part}: expected names of variables, for example ('a', 'b'), got {names!r}")
    double = next((word for word in words if words.count(word) > 1), None)
    if double is not None:
        raise ValueError(f"{part}: expected every name once, got {double!r} twice")
    return words


Role = Literal["modality", "label", "group", "covariate", "environment"]
_LISTS: Mapping[str, Role] = {
    "modalities": "modality",
    "labels": "label",
    "observe": "label",
    "groups": "group",
    "covariates": "covariate",
    "environment": "environment",
}
_MOST_NAMED = 8


class Roles(NamedTuple):
    """Names of variables by what they are, in the order of the source."""

    modalities: list[str]
    labels: list[str]
    groups: list[str]
    covariates: list[str]
    environment: str | None
    masks: dict[str, str]
    """Per modality that has one, the name of its mask."""


def assign_roles(source: str, variables: Mapping[str, Variable], options: ReadOptions) -> Roles:
    """Sort the variables of a source.

    A role is what the options say, else what the variable says. Of variables without any, `NAME_mask` is the mask of
    `NAME`, and the others are modalities unless the options name some.

    Args:
        source: Name of the source, for messages.
        variables: Its variables.
        options: What was asked for.

    Raises:
        ValueError: A name, a role or a mask that belongs to nothing.
    """
    check_names(source, variables, options)
    given = {name: _given(name, variable, options) for name, variable in variables.items()}
    masks = {name[: -len(MASK_SUFFIX)]: name for name, roles in given.items() if not roles and _is_mask(name)}
    if options.modalities:
        modalities = [name for name in given if name in options.modalities]
    else:
        modalities = [name for name, roles in given.items() if "modality" in roles or not (roles or _is_mask(name))]
        _check_masks(masks, modalities, variables)
    _check_kinds(options, modalities)
    others = {role: [name for name, roles in given.items() if role in roles] for role in _LISTS.values()}
    owned = {owner: mask for owner, mask in masks.items() if owner in modalities}
    return Roles(modalities, others["label"], others["group"], others["covariate"], _one(others["environment"]), owned)


def _one(environments: list[str]) -> str | None:
    if len(environments) > 1:
        raise ValueError(
            f"environment: expected one variable with this role, got {', '.join(environments)}; join them to one"
        )
    return environments[0] if environments else None


def check_names(source: str, there: Collection[str], options: ReadOptions) -> None:
    """Refuse options that name a variable which is not there.

    Raises:
        ValueError: The first such name, with those that look alike.
    """
    for part, names in options.named.items():
        for name in names:
            if name not in there:
                alike = difflib.get_close_matches(name, there, cutoff=0.6) or list(there)
                more = ", ..." if len(alike) > _MOST_NAMED else ""
                raise ValueError(
                    f"{part}: expected variables of {source}, got {name!r}; there is "
                    f"{', '.join(alike[:_MOST_NAMED]) or 'none'}{more}"
                )


def _given(name: str, variable: Variable, options: ReadOptions) -> set[str]:
    """Roles that the options or, for want of these, the variable itself names."""
    asked: set[str] = {role for part, role in _LISTS.items() if name in options.named[part]}
    if asked or variable.role is None:
        return asked
    if variable.role not in get_args(Role):
        raise ValueError(
            f"{name}: expected the attribute role {', '.join(get_args(Role))}, or none, got {variable.role!r}"
        )
    return {variable.role}


def _is_mask(name: object) -> bool:
    return isinstance(name, str) and name.endswith(MASK_SUFFIX)


def _check_masks(masks: Mapping[str, str], modalities: Collection[str], there: Collection[str]) -> None:
    for owner, mask in masks.items():
        if owner not in modalities:
            got = "one that is no modality" if owner in there else "none of that name"
            raise ValueError(
                f"{mask}: expected a modality {owner!r} that it is the mask of, got {got}; rename it, or give it the "
                "attribute role 'modality'"
            )


def _check_kinds(options: ReadOptions, modalities: Collection[str]) -> None:
    odd = next((name for name in options.kinds if name not in modalities), None)
    if odd is not None:
        raise ValueError(f"kinds: expected names of modalities ({', '.join(modalities)}), got {odd!r}")


# Labels, groups and covariates: one integer or text per sample, as codes of sorted levels.


UNKNOWN = -1
"""Code of a sample without a label."""

ROWS_PER_CELL = 5
"""With fewer rows for each entry of a table, on average, the table says nothing: Cochran's rule for expected counts."""

_FEW_NUMBERS, _FEW_NAMES = 10, 5
_GAP_WORDS = frozenset(
    {"-", "--", "---", ".", "?", "na", "n/a", "n.a.", "nan", "nd", "n/d", "n.d.", "null", "#n/a", "missing", "unknown"}
    | {"<lod", "<loq", "< lod", "< loq", "not measured", "not determined"}
)
_GAP_NUMBERS = (9.0, 99.0, 999.0, 9999.0, 99999.0)
_CLEARLY_LARGER = 9


class Categories(NamedTuple):
    """The levels as text, in order, and the code of each sample `[sample]`, `UNKNOWN` where it has none."""

    levels: tuple[str, ...]
    codes: np.ndarray


def to_categories(name: str, values: Any, may_lack: bool = False, kind: str = "label") -> Categories:
    """Codes of the sorted levels.

    Args:
        name: Name for messages.
        values: Integers (also as floats, as files with a missing value mark have them), booleans or texts `[sample]`.
        may_lack: Whether some samples may have none: NaN, None, or an empty text.
        kind: What the values are, for messages.

    Raises:
        ValueError: Other shapes or types, samples that have none where all must, none that has one, or levels that
            `check_levels` refuses, unless these are groups.
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise _unusable(name, f"{array.dtype} of shape {array.shape}")
    comparable, known = _comparable(name, array)
    if not may_lack or (len(known) and not known.any()):
        _check_complete(name, ~known, kind)
    levels, found = np.unique(comparable[known], return_inverse=True)
    codes = np.full(len(array), UNKNOWN, dtype=np.int64)
    codes[known] = found
    texts = tuple(str(level) for level in levels)
    if kind != "group":
        remedy = f"leave it out, or make it a group (--groups {name}) where it tells specimens apart"
        # Covariates and environments may be numbered specimens: no table of them is estimated.
        check_levels(name, texts, int(known.sum()), remedy, ROWS_PER_CELL if kind == "label" else 2)
    return Categories(texts, codes)


def check_levels(
    name: str, levels: Sequence[str], n_rows: int, remedy: str, rows_per_number: int = ROWS_PER_CELL
) -> None:
    """Refuse numbers and names of samples that are to be categories.

    Args:
        name: Of what is to be categories.
        levels: Its different entries.
        n_rows: Number of rows, or samples, that have one.
        remedy: What else to do than to put numbers into classes, for the message.
        rows_per_number: Levels that are all numbers are categories where they have so many rows each.

    Raises:
        ValueError: More than 5 levels that have fewer than 2 rows each on average, or more than 10 that are all numbers
            and have fewer than those.
    """
    are_numbers = all(map(is_number, levels))
    if are_numbers and len(levels) > _FEW_NUMBERS and rows_per_number * len(levels) > n_rows:
        raise ValueError(
            f"{name}: expected categories, got {len(levels)} different numbers in {n_rows} rows; put them into classes "
            f"(such as pandas.qcut(values, 3, labels=['low', 'middle', 'high'])), or {remedy}"
        )
    if len(levels) > _FEW_NAMES and 2 * len(levels) > n_rows:
        raise ValueError(
            f"{name}: expected categories, got {len(levels)} different entries in {n_rows} rows, as names of samples "
            f"have; {remedy}"
        )


def gap_like_levels(levels: Sequence[str]) -> list[str]:
    """Levels that look like an entry that is missing: `-` (unless there is a `+`), `NA`, `n.d.`, `<LOD`, `-999`."""
    numbers = {float(level) for level in levels if is_number(level)}
    others = [abs(number) for number in numbers if abs(number) not in _GAP_NUMBERS]
    codes = {n for n in numbers if others and abs(n) in _GAP_NUMBERS and abs(n) > _CLEARLY_LARGER * max(others)}
    if min(numbers, default=0.0) < 0 and all(-number in _GAP_NUMBERS for number in numbers if number < 0):
        codes |= {number for number in numbers if number < 0}
    words = _GAP_WORDS - {"-", "--", "---"} if any(level.startswith("+") for level in levels) else _GAP_WORDS
    is_gap = {x: x.strip().casefold() in words and x.strip() != "Na" for x in levels}  # sodium
    return [x for x in levels if is_gap[x] or (is_number(x) and float(x) in codes)]


def is_number(entry: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return bool(np.isfinite(float(entry)))
    except ValueError:
        return False


def _comparable(name: str, array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values of one type that sorts, and which of them there are, bool `[sample]`."""
    if array.dtype.kind in "biu":
        return array, np.ones(len(array), dtype=bool)
    if array.dtype.kind == "f":
        known = ~np.isnan(array)
        if (array[known] != np.round(array[known])).any() or np.isinf(array).any():
            raise _unusable(name, f"{array.dtype}")
        return np.where(known, array, 0).astype(np.int64), known
    return _texts(name, array)


def _texts(name: str, array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if array.dtype.kind not in "UTSO":
        raise _unusable(name, f"{array.dtype}")
    labels = [label.decode() if isinstance(label, bytes) else label for label in array.astype(object)]
    known = np.array([not (label is None or label == "" or label != label) for label in labels], dtype=bool)
    texts = [label if there else "" for label, there in zip(labels, known, strict=True)]
    odd = next((text for text in texts if not isinstance(text, str)), None)
    if odd is not None:
        raise _unusable(name, f"{type(odd).__name__} among them")
    return np.array(texts, dtype=str), known


def _check_complete(name: str, missing: np.ndarray, kind: str) -> None:
    if missing.any():
        raise ValueError(
            f"{name}: expected a {kind} for every sample, got none for {missing.sum()} of {len(missing)}, first sample "
            f"{missing.argmax()}; give these samples a {kind} of their own, or leave the variable out"
        )


def _unusable(name: str, got: str) -> ValueError:
    return ValueError(
        f"{name}: expected a label per sample, integers or texts [sample], got {got}; number its levels, or "
        "leave it out"
    )


def joint_groups(codes: Sequence[np.ndarray]) -> np.ndarray | None:
    """Samples that share a group of any grouping, directly or by way of others, are in one group; None without any.

    Args:
        codes: Codes `[sample]` of each grouping.
    """
    if not codes:
        return None
    sample = np.tile(np.arange(len(codes[0])), len(codes))
    first = np.cumsum([len(codes[0]), *(int(grouping.max(initial=-1)) + 1 for grouping in codes)])
    group = np.concatenate([grouping + start for grouping, start in zip(codes, first[:-1], strict=True)])
    n = int(first[-1])
    links = coo_array((np.ones(len(sample)), (sample, group)), shape=(n, n))
    component: np.ndarray = connected_components(links, directed=False)[1][: len(codes[0])]
    return np.unique(component, return_inverse=True)[1].astype(np.int64)


# The variable that tells in which environment a sample was taken.


OBSERVATIONAL = "observational"
"""The level without intervention, unless another one is named."""


class Environment(NamedTuple):
    """Names of the environments, the observational one first, and the code of each sample `[sample]`."""

    names: tuple[str, ...]
    codes: np.ndarray


def observational_rows(is_training: np.ndarray, environment: np.ndarray | None) -> np.ndarray:
    """Training samples whose nodes follow p(N): under interventions they follow another distribution, bool `[n]`.

    Args:
        is_training: Bool `[n]`.
        environment: Codes, 0 = observational, `[n]`; None: there are none.
    """
    return is_training if environment is None else is_training & (environment == 0)


def to_environment(name: str, values: Any, n_samples: int, observational: str | None) -> Environment:
    """Environments from labels; the observational one stands first, whether a sample was taken in it or not.

    Args:
        name: Name of the variable, for messages.
        values: Integers, booleans or texts `[sample]`, one for every sample.
        n_samples: Number of samples.
        observational: The level without intervention; None: `OBSERVATIONAL`.

    Raises:
        ValueError: Values that are no such labels, or a level that was named and is not there.
    """
    levels, codes = to_categories(name, values, kind="level")
    if len(codes) != n_samples:
        raise ValueError(
            f"{name}: expected {n_samples} samples, as many as the modalities have, got {len(codes)}; give one entry "
            "per sample"
        )
    if observational is not None and observational not in levels:
        raise ValueError(
            f"observational: expected a level of {name} ({', '.join(levels[:8])}), got {observational!r}; name the "
            "environment without intervention"
        )
    first = observational or OBSERVATIONAL
    names = (first, *(level for level in levels if level != first))
    return Environment(names, np.array([names.index(level) for level in levels], dtype=np.int64)[codes])
