"""Check the owner's class names: before a recording against other families, after it for unknown ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from jetsel.base.errors import CalibrationError, did_you_mean
from jetsel.calibrate.record.photographs import class_lookup, labels_in
from jetsel.calibrate.record.recording import LoadedRecording
from jetsel.zoo import Family

FEW_CLASSES = 50  # a family with up to this number of classes has its missing ones listed by name
_UNKNOWN = re.compile(r"unknown label: (['\"])(.*)\1 is not a class", re.DOTALL)


def check_family(photos: Path, family: Family, others: Mapping[str, Family], label_map: Path | None) -> None:
    """Raise CalibrationError if another family knows more of the images' class names than `family` does.

    others: by name. Nothing is checked if a label map translates the names, or if the images are in no class folders.
    """
    folders = labels_in(photos)

    def count_known(candidate: Family) -> int:
        number_of = class_lookup(candidate.labels, None)
        return sum(number_of(label) is not None for label in folders)

    if label_map is not None or not folders:
        return
    own_count, best = count_known(family), max(others.values(), key=count_known, default=family)
    if count_known(best) > own_count:
        raise CalibrationError(
            f"{photos}: {own_count} of its {len(folders)} classes are of family {family.name}, and "
            f"{count_known(best)} of family {best.name}: use --family {best.name}"
        )


def remarks(loaded: LoadedRecording, family: Family) -> list[str]:
    """Return remarks for the owner: labels that are no class of the family, and classes that have no images."""
    remarks = []
    unknown = Counter(match[2] for _, reason in loaded.left_out if (match := _UNKNOWN.match(reason)))
    if unknown:
        class_labels = dict.fromkeys((*family.labels.names, *family.labels.wnids))
        listed = _listed(f"{name} ({n}){did_you_mean(name, class_labels)}" for name, n in unknown.items())
        remarks.append(f"no class of family {family.name}: {listed}")
    classes = np.unique(loaded.recording.classes)
    names = family.labels.names
    if len(classes) == 1:
        remarks.append(f"all images are of class {names[classes[0]]}: the results do not apply to the other classes")
    elif len(names) <= FEW_CLASSES:
        missing = [name for number, name in enumerate(names) if number not in classes]
        remarks += [f"no images of {_listed(missing)}"] if missing else []
    elif len(classes) < len(names):
        remarks.append(f"images of {len(classes)} of the {len(names):,} classes")
    return remarks


def _listed(names: Iterable[str], most: int = 10) -> str:
    shown_names = list(names)
    return ", ".join(shown_names[:most]) + (f" and {len(shown_names) - most} more" if len(shown_names) > most else "")
