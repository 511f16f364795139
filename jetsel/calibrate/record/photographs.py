"""Find the images to record, and the class that each owner's label means."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jetsel.base.errors import CalibrationError
from jetsel.base.names import BY_SYSTEMS, LeftOut, NumberByName, exact, folder_name
from jetsel.calibrate.listing import folders_in, images_below, left_out_lines, path_if_usable
from jetsel.calibrate.record.cuts import WHOLE, Cut, parse_box
from jetsel.zoo import Labels

ClassLookup = Callable[[str], int | None]
"""Maps an owner's label to the number of its class; None if it names no class or several."""


def class_lookup(labels: Labels, label_map: Path | None) -> ClassLookup:
    """Return a function that finds a class by identifier or name: exactly, otherwise ignoring case and blanks.

    label_map: a CSV of `folder,label`, which takes precedence. Raises CalibrationError if the CSV is invalid.
    """
    full_names = [(name, number) for names in (labels.wnids, labels.synonyms) for number, name in enumerate(names)]
    full_keys = {exact(name) for name, _ in full_names}
    first_names = [(name, number) for number, name in enumerate(labels.names) if exact(name) not in full_keys]
    # Folders that `jetsel watch` writes for these identifiers.
    folder_names = [(folder_name(wnid), number) for number, wnid in enumerate(labels.wnids)]
    numbers = NumberByName(dict.fromkeys((*full_names, *first_names, *folder_names)))
    mapped_names = []
    for line, cells in csv_rows(label_map, ("folder", "label")) if label_map is not None else ():
        if len(cells) != 2:
            raise CalibrationError(
                f"{label_map}, line {line}: {len(cells)} columns instead of folder,label, as in: my cats,tabby"
            )
        number = numbers.get(cells[1])
        if number is None:
            raise CalibrationError(
                f"{label_map}, line {line}: {cells[1]!r} is not a class of the family; write an identifier or an "
                "English name of its labels file"
            )
        mapped_names.append((cells[0], number))
    by_map = NumberByName(mapped_names)
    return lambda name: numbers.get(name) if by_map.get(name) is None else by_map.get(name)


def csv_rows(path: Path, *headers: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells, stripped, of each row that is neither blank nor one of the headers.

    Raises CalibrationError if the file cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for line, row in enumerate(csv.reader(file, strict=True), 1):
                cells = [cell.strip() for cell in row]
                words = tuple(cell.casefold() for cell in cells)
                is_header = line == 1 and words in [header[: len(cells)] for header in headers]
                if any(cells) and not is_header:
                    yield line, cells
    except OSError as fault:
        raise CalibrationError(
            f"{path}: cannot be read: {fault.strerror}; name a CSV file with the columns {','.join(headers[0])}"
        ) from fault
    except (csv.Error, UnicodeDecodeError) as fault:
        raise CalibrationError(
            f"{path}: not a CSV file in UTF-8: {fault}; save it as UTF-8 with the columns {','.join(headers[0])}"
        ) from fault


UNKNOWN = "unknown label"
_DATE_OR_CAMERA = re.compile(r"(19|20)\d\d(\d{4}.*|\D.*)?|[1-9]\d\d[A-Z0-9_]{5}")
"""Folders that are no classes: years, dates, and those that cameras create on cards (DCF: 100CANON)."""


@dataclass(frozen=True)
class Labelled:
    """One image to record. class_number and label are None if labels are not needed."""

    path: Path
    class_number: int | None  # of the class that the label names
    label: str | None  # the owner's
    cut: Cut = WHOLE  # the part of the image that models get


@dataclass(frozen=True)
class FoundImages:
    """The images below the folder or in the CSV `source`, in the order of their paths, and the skipped files."""

    source: Path
    photographs: tuple[Labelled, ...]
    skipped: tuple[LeftOut, ...]


def find_images(
    source: Path, labels: Labels, label_map: Path | None, need_labels: bool, sizes: Sequence[int] = ()
) -> FoundImages:
    """Return the images of a folder with one folder per class, or of a CSV of `path,label` (header optional).

    A CSV of `file,left,top,right,bottom,label` lists boxes. Paths in a CSV are relative to it. sizes: shorter sides in
    pixels of reduced copies, which are added to each whole image.

    Labels are identifiers or English names; label_map: a CSV of `folder,label` for other names. Without need_labels,
    every image below the folder or in the CSV counts. Files with unknown labels and other files are skipped. Raises
    CalibrationError if no image is left.
    """
    source = source.resolve()
    number_of = class_lookup(labels, label_map)
    files = _files_in_folder(source) if source.is_dir() else _files_in_csv(source, need_labels)
    results = [
        file if isinstance(file, LeftOut) else _classify(file, label, cut, number_of, need_labels)
        for file, label, one in dict.fromkeys(files)
        for cut in (one, *(Cut(size) for size in sizes if one == WHOLE))
    ]
    labelled = [one for one in results if isinstance(one, Labelled)]
    photographs = sorted(labelled, key=lambda one: (one.path, one.label or "", one.cut.text))
    skipped = sorted((one for one in results if isinstance(one, LeftOut)), key=lambda one: (one.path, one.reason))
    if not photographs:
        if need_labels and source.is_dir():
            check_level(source, number_of)
        raise CalibrationError(_why_no_images(source, skipped, labels, need_labels))
    return FoundImages(source, tuple(photographs), tuple(skipped))


def labels_in(source: Path) -> list[str]:
    """Return the owner's labels: the names of the folders in `source`, or the labels in a CSV."""
    if not source.is_dir():
        return sorted({label for _, label, _ in _files_in_csv(source, need_labels=True) if label is not None})
    return [folder.name for folder in folders_in(source)]


def class_names(source: Path) -> list[str]:
    """Return the names of new classes, one for each folder in `source`, sorted.

    Raises CalibrationError if there are none, if two are the same name, or if the classes are one level deeper.
    """
    by_name = defaultdict(list)
    for folder in labels_in(source):
        by_name[exact(folder)].append(folder)
    if not by_name:
        message = f"{source}: it has no class folders; make one folder of images for each class"
        left_out = [entry for entry in images_below(source) if isinstance(entry, LeftOut)]
        raise CalibrationError("; ".join((message, *left_out_lines(left_out))))
    for spellings in by_name.values():
        if len(spellings) > 1:
            names = " and ".join(map(ascii, spellings))
            raise CalibrationError(
                f"{source}: {names} are one name, written in two ways; move the images into one of these folders"
            )
    check_level(source)
    return sorted(by_name)


def check_level(source: Path, number_of: ClassLookup | None = None) -> None:
    """Raise CalibrationError if the class folders are one level deeper than expected, as in train/rose and val/rose.

    number_of: recognizes known classes; a folder in `source` must not hold folders of such a name. None, if the classes
    are new: then it is an error if no folder in `source` holds images itself, and either two of them hold folders with
    the same name or there is only one. Folders named by dates or by cameras do not count.
    """
    inside: dict[str, set[str]] = defaultdict(set)  # folder -> its folders that hold images, "" for itself
    for path in images_below(source):
        outer, *below = path.relative_to(source).parts if isinstance(path, Path) else ("",)
        if below:
            inside[outer].add(below[0] if len(below) > 1 else "")
    if number_of is not None:
        parents = {outer for outer, names in inside.items() if any(number_of(name) is not None for name in names)}
    else:
        by_folder = {
            outer: {name for name in names if not _DATE_OR_CAMERA.fullmatch(name)} for outer, names in inside.items()
        }
        counts = Counter(name for names in by_folder.values() for name in names)
        is_deeper = "" not in counts and (max(counts.values(), default=0) > 1 or (len(inside) == 1 and len(counts) > 1))
        parents = {outer for outer, names in by_folder.items() if names} if is_deeper else set()
    if parents:
        listed = ", ".join(str(source / outer) for outer in sorted(parents))
        raise CalibrationError(f"{source}: its folders hold the classes one level deeper; give one of these: {listed}")


def _classify(path: Path, label: str | None, cut: Cut, number_of: ClassLookup, need_labels: bool) -> Labelled | LeftOut:
    if not need_labels:
        return Labelled(path, None, None, cut)
    if label is None:
        return LeftOut(path, "no label: it is not in a class folder; move it into the folder of its class")
    number = number_of(label)
    if number is None:
        return LeftOut(path, f"{UNKNOWN}: {label!r} is not a class of the family; rename it or add it to a label map")
    return Labelled(path, number, label, cut)


FoundFile = tuple[Path | LeftOut, str | None, Cut]
"""An image's path, or the path and the reason if it is skipped; its label; the part of it that models get."""


def _files_in_folder(source: Path) -> Iterator[FoundFile]:
    """Yield each file below a folder at any depth; the outermost folder is its label."""
    for path in images_below(source):
        folders = path.relative_to(source).parts[:-1] if isinstance(path, Path) else ()
        yield path, folders[0] if folders else None, WHOLE


BOXES = ("file", "left", "top", "right", "bottom", "label")


def _files_in_csv(source: Path, need_labels: bool) -> Iterator[FoundFile]:
    for line, cells in csv_rows(source, ("path", "label"), BOXES):
        location, is_box = f"{source}, line {line}", len(cells) == len(BOXES)
        if not is_box and (len(cells) > 2 or (need_labels and len(cells) != 2)):
            raise CalibrationError(
                f"{location}: {len(cells)} columns instead of path,label, as in: cats/1.jpg,tabby, or {','.join(BOXES)}"
            )
        cut = parse_box(cells[1:5], location) if is_box else WHOLE
        yield path_if_usable(source.parent / cells[0], is_folder=False), cells[-1] if need_labels else None, cut


def _why_no_images(source: Path, skipped: list[LeftOut], labels: Labels, need_labels: bool) -> str:
    repair = "put JPEG, PNG or WebP files there" + " in a folder for each class" * need_labels
    left_out = [one for one in skipped if not one.reason.startswith(BY_SYSTEMS)]
    if not left_out:
        return "; ".join((f"{source}: no images there", repair, *left_out_lines(skipped)))
    if any(one.reason.startswith(UNKNOWN) for one in skipped):
        names = " or ".join(dict.fromkeys((labels.wnids[0], labels.names[0])))
        repair = f"name each folder after its class, as in {names}, or map folders with --label-map"
    first = f"{left_out[0].path.name}: {left_out[0].reason}"
    return f"{source}: none of {len(left_out)} files can be used, the first is {first}; {repair}"
