"""Which class the owner's words mean: an identifier, an English name, or what the label map says."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from jetsel.errors import CalibrationError
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
                f"{label_map}, line {line}: {len(cells)} columns where folder,label are due, as in: my cats,tabby"
            )
        if key(cells[1]) not in found:
            raise CalibrationError(
                f"{label_map}, line {line}: {cells[1]!r} is no class of the family; write an identifier or an "
                "English name of its labels file"
            )
        mapped[key(cells[0])] = found[key(cells[1])]
    return found | mapped


def key(name: str) -> str:
    """Return a name without what does not matter: case, outer blanks and `_` for a blank."""
    return name.replace("_", " ").strip().casefold()


def csv_rows(path: Path, header: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells, stripped, of each row that is neither blank nor the header.

    Raises CalibrationError where the file cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for line, row in enumerate(csv.reader(file, strict=True), 1):
                cells = [cell.strip() for cell in row]
                is_header = line == 1 and tuple(cell.casefold() for cell in cells) == header[: len(cells)]
                if any(cells) and not is_header:
                    yield line, cells
    except OSError as fault:
        raise CalibrationError(f"{path}: cannot be read: {fault.strerror}; name a CSV of {','.join(header)}") from fault
    except (csv.Error, UnicodeDecodeError) as fault:
        raise CalibrationError(f"{path}: no CSV in UTF-8: {fault}; save it as one, of {','.join(header)}") from fault
