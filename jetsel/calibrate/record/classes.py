"""What an owner's names for classes say before and after a recording: whose they are, and which say nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from jetsel.base.errors import CalibrationError, did_you_mean
from jetsel.calibrate.record.photographs import class_of, labels_in
from jetsel.calibrate.record.recording import LoadedRecording
from jetsel.zoo import Family

FEW_CLASSES = 50  # of a family: up to this number are listed by name
_UNKNOWN = re.compile(r"unknown label: (['\"])(.*)\1 is not a class", re.DOTALL)


def check_family(photos: Path, family: Family, others: Mapping[str, Family], label_map: Path | None) -> None:
    """Raise CalibrationError if another family has these classes, and this one has fewer of them."""
    folders = labels_in(photos)

    def known(one: Family) -> int:
        number_of = class_of(one.labels, None)
        return sum(number_of(label) is not None for label in folders)

    if label_map is not None or not folders:
        return
    ours, best = known(family), max(others.values(), key=known, default=family)
    if known(best) > ours:
        raise CalibrationError(
            f"{photos}: {ours} of its {len(folders)} classes are of family {family.name}, and {known(best)} of family "
            f"{best.name}: use --family {best.name}"
        )


def remarks(loaded: LoadedRecording, family: Family) -> list[str]:
    """Say which labels nobody knows, and which classes have no photographs."""
    remarks = []
    unknown = Counter(match[2] for _, reason in loaded.left_out if (match := _UNKNOWN.match(reason)))
    if unknown:
        listed = _listed(f"{name} ({n}){_near(name, family)}" for name, n in unknown.items())
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


def _near(label: str, family: Family) -> str:
    return did_you_mean(label, dict.fromkeys((*family.labels.names, *family.labels.wnids)))


def _listed(names: Iterable[str], most: int = 10) -> str:
    shown_names = list(names)
    return ", ".join(shown_names[:most]) + (f" and {len(shown_names) - most} more" if len(shown_names) > most else "")
