"""Places that a command is to write to, checked before the work."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import h5py

from causalpima.inference.graphs.formats import ORIENTATION
from causalpima.inference.store.files import FORMAT_KEY, OutputError
from causalpima.inference.store.input_files import read_text
from causalpima.inference.store.run_folder import LATER, WRITTEN, check_writable

__all__ = [
    "OUTPUTS",
    "can_write_into",
    "check_places",
]


OUTPUTS = {"json": "file", "output": "file", "figure": "file", "figures": "folder", "output_dir": "folder"}
"""Flags, of whichever command, that name what is written; whatever else a command line names is read."""

_FOLDERS_OF_A_RUN = ("checkpoint", "restarts", "folds")
_SUBFOLDERS = (*_FOLDERS_OF_A_RUN, "names", "unnamed")


def can_write_into(folder: Path) -> bool:
    """Whether it is a folder in which files can be made."""
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _place(path: Path) -> Path:
    """The file itself, whatever the way to it."""
    return Path(os.path.realpath(path))


def check_places(command: str, argv: Sequence[str], found: Mapping[str, Any], more: Mapping[str, Path]) -> None:
    """Refuse to write over what is read, over what a run is made of, and over files that are not of this program.

    Every command passes through here when it has parsed its flags. What is read is not declared: every word of the
    command line that names something counts, also within `fixed:FILE`, `FLAG=A,B` and `module:Class`, and so does what
    is named by a run's `config.yaml`, by files of settings, and by the cells of a table.

    Args:
        command: Its name; of the files that later commands keep in the folder of a run, its own may be written.
        argv: The command line.
        found: Values by flag.
        more: Further files that are written, by the flag that they follow from.

    Raises:
        OutputError: The first place that is refused.
    """
    files = {flag: Path(found[flag]) for flag, kind in OUTPUTS.items() if kind == "file" and found.get(flag)}
    files |= more
    folders = {flag: Path(found[flag]) for flag, kind in OUTPUTS.items() if kind == "folder" and found.get(flag)}
    read = [path for path in _named(argv) if os.path.exists(path)]  # what is too long for a name is none
    own = _own_folders(command, folders, found)
    written: dict[Path, str] = {}
    for flag, path in sorted(files.items(), key=lambda item: item[0] == "json"):
        _check_file(flag, path, own)
        _check_owner(flag, path, command, read, own)
        same = next((other for other in written if _is_same(other, path)), None)
        if same is not None:
            raise OutputError(f"{flag}: expected a file of its own, got {path}, which is written, too; name another")
        written[path] = flag
    if any(path.exists() for path in (*files.values(), *folders.values())):
        inputs = {_identity(path): path for path in [*read, *_named_in(read)] if path.is_file()}
        _check_inputs(files, folders, inputs)
        if not found.get("force"):
            _check_strangers(files, folders)
    for flag, path in folders.items():
        _check_folder(flag, path, read)


def _own_folders(command: str, folders: Mapping[str, Path], found: Mapping[str, Any]) -> list[Path]:
    """Folders of runs that the command itself makes or goes on with."""
    own = [folders["output_dir"]] if "output_dir" in folders else []
    return [*own, Path(found["resume"])] if found.get("resume") else own


def _check_file(flag: str, path: Path, own: Sequence[Path]) -> None:
    home = path.absolute().parent
    will_be_made = any(home == folder.absolute() for folder in own)
    if _is_special(path):
        return
    if path.is_dir() or not (will_be_made or can_write_into(home)):
        raise OutputError(f"{flag}: expected a file in a folder that you may write to, got {path}; name another")


def _check_folder(flag: str, path: Path, read: Sequence[Path]) -> None:
    if path.exists() and not path.is_dir():
        raise OutputError(f"{flag}: expected a folder, got the file {path}; name another")
    check_writable(path, flag)
    place = _place(path)
    run = next((parent for parent in (place, *place.parents) if _is_run(parent)), None)
    if run is None:
        return
    name = place.relative_to(run).as_posix()
    is_inner = name.split("/")[0] in _SUBFOLDERS or (name != "figures" and _is_owned(name))
    is_of_another = place == run / "figures" and not any(_is_same(run, folder) for folder in read)
    if is_inner or is_of_another:
        raise OutputError(f"{flag}: expected another folder than those of the run {run}, got {path}; name another")


def _check_owner(flag: str, path: Path, command: str, read: Sequence[Path], own: Sequence[Path]) -> None:
    """Refuse the name of a file that a run is made of, in whichever run; and the inside of a zarr store."""
    place = _place(path)
    for home in place.parents:
        if home.suffix == ".zarr" and home.is_dir():
            raise OutputError(f"{flag}: expected a file outside of {home}, got {path}; name another")
        if not (_is_run(home) or any(home == _place(folder) for folder in own)):
            continue
        name = place.relative_to(home).as_posix()
        is_read = any(_is_same(home, folder) for folder in read)
        is_its_own = is_read and name == {"report": "report.html"}.get(command, f"{command}.json")
        if _is_owned(name) and not is_its_own:
            raise OutputError(f"{flag}: expected another file than those of the run {home}, got {path}; name another")


def _is_owned(name: str) -> bool:
    """Whether a path within the folder of a run is one that the program gives a meaning to."""
    is_inner = name.split("/")[0] in _FOLDERS_OF_A_RUN
    return is_inner or any(fnmatch(name, form) for form in ("config.yaml", "names/names.csv", *WRITTEN, *LATER))


def _is_of_run(place: Path) -> bool:
    """Whether it has a name in a run that `_check_owner` or `_check_folder` let pass."""
    return any(_is_run(home) and _is_owned(place.relative_to(home).as_posix()) for home in place.parents)


def _is_run(folder: Path) -> bool:
    """Whether a folder has the configuration or the checkpoints of a run."""
    if next((folder / "checkpoint").glob("epoch-*"), None) or (folder / "checkpoint" / "final").is_dir():
        return True
    try:
        return re.search(r"^nodes:", read_text(folder / "config.yaml"), re.MULTILINE) is not None
    except (OSError, UnicodeDecodeError):
        return False


def _check_inputs(
    files: Mapping[str, Path], folders: Mapping[str, Path], inputs: Mapping[tuple[int, int], Path]
) -> None:
    for flag, path in files.items():
        if path.is_file() and _identity(path) in inputs:
            raise OutputError(
                f"{flag}: expected a file of its own, got {path}, which is read or written, too; name another"
            )
    for flag, folder in folders.items():
        for path in inputs.values():
            if _place(path).is_relative_to(_place(folder)):
                name = _place(path).relative_to(_place(folder)).as_posix()
                if _is_owned(name if flag == "output_dir" else f"figures/{name}"):
                    raise OutputError(
                        f"{flag}: expected a folder whose files are not read, got {folder} with {path}; name another"
                    )


def _check_strangers(files: Mapping[str, Path], folders: Mapping[str, Path]) -> None:
    """Refuse to replace what this program did not write."""
    found = [(flag, path) for flag, path in files.items() if path.is_file()]
    if "figures" in folders and folders["figures"].is_dir():
        drawn = [path for path in folders["figures"].glob("*.png") if _is_owned(f"figures/{path.name}")]
        found += [("figures", path) for path in sorted(drawn)]
    for flag, path in found:
        if not (_is_of_this_program(path) or _is_of_run(_place(path))):
            raise OutputError(
                f"{flag}: expected a new file, or an earlier one of this program, got {path}, which is another; name "
                "a new one, or replace it with --force"
            )


_MARKS = {
    ".png": rb"\x89PNG.{,200}tEXtSoftware\x00causalPIMA",
    ".html": rb'<!DOCTYPE html>.{,400}<meta name="generator" content="causalPIMA">',
    ".csv": rb"row -> column|from,to,edge,directed,named,",
    ".dot": rb'digraph \{\n  graph \[orientation="row -> column',
    ".gv": rb'digraph \{\n  graph \[orientation="row -> column',
    ".graphml": rb'<\?xml .{,300}<key id="orientation" for="graph"',
    ".bif": rb"// " + re.escape(ORIENTATION.encode()),
}
_JSON = rb'\{\s*"' + FORMAT_KEY.encode() + rb'": '


def _is_of_this_program(path: Path) -> bool:
    """Whether a file begins as those that are written here; an empty one holds nothing that could be lost."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
        if not head:
            return True
        if path.suffix == ".nc":
            with h5py.File(path, "r") as content:
                return FORMAT_KEY in content.attrs
    except OSError:
        return False
    return re.match(_MARKS.get(path.suffix.lower(), _JSON), head, re.DOTALL) is not None


_NEEDED = ("config.yaml", "summary.json", "metrics.jsonl", "posterior.nc", "checkpoint/*/*", "checkpoint/*/*/*")
_OUTPUT_SETTING = re.compile(rf"^\s*[\"']?({'|'.join(OUTPUTS)})[\"']?\s*:")


def _named(argv: Sequence[str]) -> Iterator[Path]:
    """Whatever words of a command line could name, but for the values of flags that say what is written."""
    is_written = False
    for word in argv:
        if word.startswith("--"):
            flag, equals, value = word.removeprefix("--").partition("=")
            is_written = flag in OUTPUTS and not equals
            if equals and flag not in OUTPUTS:
                yield from _paths(value)
        elif is_written:
            is_written = False
        else:
            yield from _paths(word)


def _paths(text: str, home: Path = Path()) -> Iterator[Path]:
    parts = {text, *re.split(r"[,;=]", text)}
    for part in {*parts, *(part.partition(":")[2] for part in parts if ":" in part)}:
        if part.strip() and "\0" not in part:
            yield home / Path(part.strip()).expanduser()
    for part in parts:
        if re.fullmatch(r"[\w.]+:\w+", part.strip()):
            yield home / f"{part.strip().partition(':')[0].replace('.', '/')}.py"


def _named_in(paths: Iterable[Path]) -> Iterator[Path]:
    """What is named by files of settings, by tables, and by the configuration of a run; and what a run is made of."""
    for path in paths:
        if path.is_dir() and _is_run(path):
            yield from (file for form in _NEEDED for file in path.glob(form))
        file = path / "config.yaml" if path.is_dir() else path
        is_settings = file.suffix.lower() in (".yaml", ".yml", ".json")
        if not is_settings and file.suffix.lower() not in (".csv", ".tsv", ".txt"):
            continue
        try:
            text = read_text(file)
        except (OSError, UnicodeDecodeError):
            continue
        lines = [line for line in text.splitlines() if not (is_settings and _OUTPUT_SETTING.match(line))]
        words = {word.strip(" \t\"'-[]{}") for line in lines for word in re.split(r"[,;\t]|: ", line)}
        for word in words:
            for home in (Path(), file.parent):
                yield from _existing(word, home)


def _existing(word: str, home: Path) -> Iterator[Path]:
    yield from (path for path in _paths(word, home) if os.path.isfile(path))


def _is_same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return _identity(one) == _identity(other)
    return _place(one) == _place(other)


def _identity(path: Path) -> tuple[int, int]:
    """Equal for all names of a file, hard links included."""
    found = path.stat()
    return found.st_dev, found.st_ino


def _is_special(path: Path) -> bool:
    """A device or a pipe: there is nothing to lose."""
    return path.exists() and not path.is_file() and not path.is_dir()
