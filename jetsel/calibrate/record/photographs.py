"""Which photographs there are to record, and which class their owner's words mean."""

from __future__ import annotations

import csv
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jetsel.base.errors import CalibrationError
from jetsel.zoo import Labels


def class_numbers(labels: Labels, label_map: Path | None) -> dict[str, int]:
    """Return the classes of a family by the words for them, as `key` has them; a name that several have is left out.

    label_map: a CSV of `folder,label`. Raises CalibrationError that names its line.
    """
    by_name: dict[str, set[int]] = defaultdict(set)
    for number, names in enumerate(zip(labels.names, labels.synonyms, strict=True)):
        for name in names:
            by_name[key(name)].add(number)
    found = {name: min(numbers) for name, numbers in by_name.items() if len(numbers) == 1}
    found |= {key(wnid): number for number, wnid in enumerate(labels.wnids)}
    mapped = {}
    for line, cells in csv_rows(label_map, ("folder", "label")) if label_map is not None else ():
        if len(cells) != 2:
            raise CalibrationError(
                f"{label_map}, line {line}: {len(cells)} columns instead of folder,label, as in: my cats,tabby"
            )
        if key(cells[1]) not in found:
            raise CalibrationError(
                f"{label_map}, line {line}: {cells[1]!r} is not a class of the family; write an identifier or an "
                "English name of its labels file"
            )
        mapped[key(cells[0])] = found[key(cells[1])]
    return found | mapped


def key(name: str) -> str:
    """Return a name without what does not matter: case, outer blanks and `_` for a blank."""
    return name.replace("_", " ").strip().casefold()


def csv_rows(path: Path, header: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells, stripped, of each row that is neither blank nor the header.

    Raises CalibrationError if the file cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for line, row in enumerate(csv.reader(file, strict=True), 1):
                cells = [cell.strip() for cell in row]
                is_header = line == 1 and tuple(cell.casefold() for cell in cells) == header[: len(cells)]
                if any(cells) and not is_header:
                    yield line, cells
    except OSError as fault:
        raise CalibrationError(
            f"{path}: cannot be read: {fault.strerror}; name a CSV file with the columns {','.join(header)}"
        ) from fault
    except (csv.Error, UnicodeDecodeError) as fault:
        raise CalibrationError(
            f"{path}: not a CSV file in UTF-8: {fault}; save it as UTF-8 with the columns {','.join(header)}"
        ) from fault


SUFFIXES = frozenset({".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp"})
"""How the files end that jetsel.image reads."""

UNKNOWN = "unknown label"
MOST_NAMED = 3  # files with the same kind of reason


@dataclass(frozen=True)
class Labelled:
    """One photograph. label: as its owner gave it; class_number: what it means; both None if none was asked for."""

    path: Path
    class_number: int | None
    label: str | None


@dataclass(frozen=True)
class Skipped:
    """A file that is not recorded. reason: what is wrong, in one word or two, then `: ` and the particulars."""

    path: Path
    reason: str


@dataclass(frozen=True)
class FoundImages:
    """The photographs below one folder or in one CSV, in the order of their paths, and what is left out."""

    source: Path
    photographs: tuple[Labelled, ...]
    skipped: tuple[Skipped, ...]


def find(source: Path, labels: Labels, label_map: Path | None, need_labels: bool) -> FoundImages:
    """List the photographs of a folder with one folder per class, or of a CSV of `path,label` (header optional).

    A class is named by its identifier or its English name; label_map: a CSV of `folder,label` for other names. Paths in
    the CSV are relative to it. Without need_labels every image below the folder, or every path of the CSV, counts.
    Unknown labels and other files are listed and stop nothing. Raises CalibrationError if nothing can be used.
    """
    source = source.resolve()
    numbers = class_numbers(labels, label_map)
    given = _in_folder(source) if source.is_dir() else _in_csv(source, need_labels)
    judged = [_judge(path, label, numbers, need_labels) for path, label in dict.fromkeys(given)]
    photographs = sorted((j for j in judged if isinstance(j, Labelled)), key=lambda p: (p.path, p.label or ""))
    skipped = sorted((j for j in judged if isinstance(j, Skipped)), key=lambda s: (s.path, s.reason))
    if not photographs:
        deeper = _sets_in(source, numbers) if need_labels and source.is_dir() else []
        if deeper:
            raise CalibrationError(
                f"{source}: its folders hold the classes one level deeper; give one of these: {', '.join(deeper)}"
            )
        raise CalibrationError(_none_found(source, skipped, labels, need_labels))
    return FoundImages(source, tuple(photographs), tuple(skipped))


def labels_in(source: Path) -> set[str]:
    """Return the names of the folders in a folder, or of the labels in a CSV; raises CalibrationError."""
    if not source.is_dir():
        return {label for _, label in _in_csv(source, need_labels=True) if label is not None}
    return {entry.name for entry in source.iterdir() if entry.is_dir() and not entry.name.startswith(".")}


def count_reasons(reasons: Sequence[str]) -> dict[str, int]:
    """Return how often each kind of reason stands there, most frequent first: the words before the first `: `."""
    return dict(Counter(reason.partition(": ")[0] for reason in reasons).most_common())


def left_out_lines(left_out: Sequence[tuple[str, str]]) -> list[str]:
    """Return for each kind of reason how many files are left out, and the first of them with the particulars."""
    files: dict[str, list[str]] = {}
    for path, reason in left_out:
        kind, _, particulars = reason.partition(": ")
        files.setdefault(kind, []).append(f"  {path}: {particulars}")
    lines = []
    for kind, listed in sorted(files.items(), key=lambda item: -len(item[1])):
        lines += [f"left out: {len(listed)} {kind}", *listed[:MOST_NAMED]]
        lines += [f"  and {len(listed) - MOST_NAMED} more"] if len(listed) > MOST_NAMED else []
    return lines


def _judge(path: Path, label: str | None, numbers: Mapping[str, int], need_labels: bool) -> Labelled | Skipped:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return Skipped(Path(os.fsencode(path).decode(errors="replace")), "unreadable: its name is not UTF-8; rename it")
    if path.suffix.lower() not in SUFFIXES:
        return Skipped(path, "not an image: its name does not end with .jpg, .png, .webp or the like")
    if not need_labels:
        return Labelled(path, None, None)
    if label is None:
        return Skipped(path, "no label: it is not in a class folder; move it into the folder of its class")
    number = numbers.get(key(label))
    if number is None:
        return Skipped(path, f"{UNKNOWN}: {label!r} is not a class of the family; rename it or add it to a label map")
    return Labelled(path, number, label)


def _in_folder(source: Path) -> Iterator[tuple[Path, str | None]]:
    """Every file at any depth, hidden ones left out, and the outermost folder that it lies in."""
    try:
        entries = [entry for entry in source.iterdir() if not entry.name.startswith(".")]
    except OSError as fault:
        raise CalibrationError(
            f"{source}: cannot be read: {fault.strerror}; name a folder that you may read"
        ) from fault
    for entry in entries:
        if not entry.is_dir():
            yield entry, None
        for directory, folders, files in os.walk(entry):
            folders[:] = [name for name in folders if not name.startswith(".")]
            yield from ((Path(directory, name), entry.name) for name in files if not name.startswith("."))


def _in_csv(source: Path, need_labels: bool) -> Iterator[tuple[Path, str | None]]:
    for line, cells in csv_rows(source, ("path", "label")):
        if len(cells) > 2 or (need_labels and len(cells) != 2):
            raise CalibrationError(
                f"{source}, line {line}: {len(cells)} columns instead of path,label, as in: cats/1.jpg,tabby"
            )
        yield source.parent / cells[0], cells[1] if need_labels else None


def _sets_in(source: Path, numbers: Mapping[str, int]) -> list[str]:
    """Return the folders of a folder that hold a folder for at least one known class."""
    return sorted(str(inner) for name in labels_in(source) if _names_classes(inner := source / name, numbers))


def _names_classes(folder: Path, numbers: Mapping[str, int]) -> bool:
    try:
        return any(key(name) in numbers for name in labels_in(folder))
    except OSError:
        return False


def _none_found(source: Path, skipped: list[Skipped], labels: Labels, need_labels: bool) -> str:
    repair = "put JPEG, PNG or WebP files there" + " in a folder for each class" * need_labels
    if not skipped:
        return f"{source}: no images there; {repair}"
    if any(one.reason.startswith(UNKNOWN) for one in skipped):
        names = " or ".join(dict.fromkeys((labels.wnids[0], labels.names[0])))
        repair = f"name each folder after its class, as in {names}, or map folders with --label-map"
    first = f"{skipped[0].path.name}: {skipped[0].reason}"
    return f"{source}: none of {len(skipped)} files can be used, the first is {first}; {repair}"
