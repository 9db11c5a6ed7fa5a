"""The manifest: a table with a row per sample, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inference.data.preparation.headers import clean_name, parse_header
from inference.data.preparation.text_files import MISSING, Layout, read_table, read_text
from inference.results.text import shorten

__all__ = ["Column", "Manifest", "read_manifest"]

_SEPARATORS = (";", "\t", ",")
_NAME_WIDTH = 40


@dataclass(frozen=True)
class Column:
    """A column of the manifest.

    Attributes:
        header: As it stands in the file.
        title: The header without units.
        name: The title as the name of a variable.
        units: Units in the header; empty where there are none.
        entries: One per row, stripped; empty where there is none.
    """

    header: str
    title: str
    name: str
    units: str
    entries: tuple[str, ...]

    def is_called(self, word: str) -> bool:
        """Whether a flag may name the column so: header, title or name, in whichever case."""
        return word.casefold() in {text.casefold() for text in (self.header, self.title, self.name)}


@dataclass(frozen=True)
class Manifest:
    """A manifest, and how its numbers are written.

    Attributes:
        path: The file; paths in it start from its folder.
        columns: The columns that have a header.
        decimal: `.`, or `,` in a file whose fields are not separated by commas and whose numbers bear them.
    """

    path: Path
    columns: tuple[Column, ...]
    decimal: str

    @property
    def n_rows(self) -> int:
        """Rows without the header."""
        return len(self.columns[0].entries)

    def find(self, word: str, flag: str) -> Column:
        """The column that a flag names.

        Raises:
            ValueError: There is none of that name, or several.
        """
        exact = [column for column in self.columns if column.header == word]
        found = exact or [column for column in self.columns if column.is_called(word)]
        if len(found) != 1:
            there = ", ".join(shorten(column.header, _NAME_WIDTH) for column in self.columns)
            raise ValueError(f"{flag}: expected a column of {self.path}, got {word!r}; there are {there}")
        return found[0]

    def resolve(self, entry: str) -> Path:
        """The file that an entry names: from the manifest's folder, with either slash."""
        home = self.path.parent
        path = home / Path(entry).expanduser()
        return home / entry.replace("\\", "/") if "\\" in entry and not path.exists() else path


def read_manifest(path: Path) -> Manifest:
    """Read a table whose first line names the columns; the commonest separator of that line separates.

    Raises:
        ValueError: No file, no text, no header, no rows, rows longer than the header, or two columns of one name.
    """
    lines = [line for line in _read(path).splitlines() if line.strip(" \t,;")]
    if len(lines) < 2:
        raise ValueError(f"{path}: expected a header and a row per sample, got {len(lines)} lines; add the samples")
    separator = max(_SEPARATORS, key=lines[0].count)
    try:
        table = read_table(lines, Layout(separator, "."), as_text=True).fillna("")
    except ValueError as error:  # pandas' own errors are among them
        raise ValueError(f"{path}: expected as many fields in every row as in the header ({error})") from error
    rows = [[_entry(text) for text in row] for row in table.itertuples(index=False)]
    columns = [_column(header, entries) for header, *entries in zip(*rows, strict=True) if header]
    _check_columns(path, columns)
    return Manifest(path, tuple(columns), _decimal(separator, columns))


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(
            f"{path}: expected a readable table of samples, got none ({reason}); name a CSV file"
        ) from error


def _entry(text: str) -> str:
    stripped = text.strip()
    return "" if stripped in MISSING else stripped


def _column(header: str, entries: Sequence[str]) -> Column:
    parsed = parse_header(header)
    title = parsed.name or header
    return Column(header, title, clean_name(title), parsed.units, tuple(entries))


def _check_columns(path: Path, columns: Sequence[Column]) -> None:
    if not columns:
        raise ValueError(f"{path}: expected a header that names the columns, got none; write it in the first line")
    for column in columns:
        if not column.name:
            raise ValueError(
                f"{path}: expected names of columns with letters or digits, got {column.header!r}; rename it"
            )
    name, count = Counter(column.name for column in columns).most_common(1)[0]
    if count > 1:
        headers = " and ".join(repr(column.header) for column in columns if column.name == name)
        raise ValueError(f"{path}: expected columns of different names, got {headers}; rename all but one")


def _decimal(separator: str, columns: Sequence[Column]) -> str:
    """A comma if numbers bear one and none a point: a table with separators like `;`, of another locale."""
    entries = [entry for column in columns for entry in column.entries]
    with_comma = any(_is_number(entry.replace(",", ".")) and "," in entry for entry in entries)
    return "," if separator != "," and with_comma else "."


def _is_number(entry: str) -> bool:
    try:
        float(entry)
    except ValueError:
        return False
    return True
