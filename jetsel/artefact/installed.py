"""The owner's calibrations of one family: numbered directories that never change, and a link to the one in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jetsel.artefact.calibration import ANSWERS, Calibration
from jetsel.artefact.coding import encode, identity, read
from jetsel.base.errors import CalibrationError
from jetsel.base.names import RULE, is_plain
from jetsel.base.versions import NONE, Versions

SHIPPED = NONE  # stands for the one that came with the models, which lies elsewhere: no link says so
REPORT = "report.html"


@dataclass(frozen=True, eq=False)
class Installed:
    """One calibration of the history; if it cannot be used, `calibration` is None and `reason` says why.

    sha256: of every copy of it, on any device; None if it cannot be used.
    """

    number: int
    directory: Path
    calibration: Calibration | None
    reason: str | None
    is_current: bool
    report: Path | None = None
    sha256: str | None = None

    @property
    def called(self) -> str:
        """Which one it is, in words."""
        name = _named(self.number)
        return name if self.calibration is None else f"{name}, of {self.calibration.created}"

    def usable(self) -> Calibration:
        """Return the calibration; raises CalibrationError with the reason if there is none."""
        if self.calibration is None:
            raise CalibrationError(self.reason)
        return self.calibration


def install(
    calibration: Calibration, folder: Path, family: str, report: str | None = None, answers: bytes | None = None
) -> Installed:
    """Put a calibration into `folder`/`family` under the next number, with its report (HTML), and have it used.

    answers: the content of ANSWERS, by which other machines fit it to theirs; None if it is not known.

    Killed or out of space at any moment, `current` gives the one before, whole. Of those that are older the last 10 are
    kept. Raises CalibrationError that names the repair, and then nothing has changed.
    """
    versions = _versions(folder, family)
    if calibration.family != family:
        raise CalibrationError(f"the calibration is of family {calibration.family}, not {family}: calibrate {family}")
    others = {REPORT: None if report is None else report.encode(), ANSWERS: answers}
    files = encode(calibration) | {name: content for name, content in others.items() if content is not None}
    number = versions.install(files, read)
    return _look(versions.path(number), number, is_current=True)


def current(folder: Path, family: str) -> Installed | None:
    """Return the calibration in use, with its reason if it is refused; None if none of the owner's is.

    Raises CalibrationError if the link itself is none of ours or cannot be read.
    """
    versions = _versions(folder, family)
    number = versions.current()
    return None if number == NONE else _look(versions.path(number), number, is_current=True)


def shipped(directory: Path, labels_sha256: str | None = None) -> Installed | None:
    """Return the calibration that came with a family's models, in the same shape; None if none did.

    labels_sha256: of the family, None for any. Models with heads of their owner's share the folder of their backbone:
    its calibration is of other classes, and not theirs.
    """
    installed = _look(directory, SHIPPED, is_current=False) if directory.is_dir() else None
    if (
        installed is None
        or installed.calibration is None
        or labels_sha256 in (None, installed.calibration.labels_sha256)
    ):
        return installed
    return None


def history(folder: Path, family: str) -> list[Installed]:
    """Return every calibration that is kept, the newest first. Raises CalibrationError if none can be listed."""
    versions = _versions(folder, family)
    used = versions.current()
    numbers = sorted({*versions.numbers(), used} - {SHIPPED}, reverse=True)
    return [_look(versions.path(number), number, is_current=number == used) for number in numbers]


def rollback(folder: Path, family: str, to: int | None, refused: Mapping[int, str]) -> Installed | None:
    """Have the calibration before the current one used, or the one numbered `to`; None if that is the shipped one.

    refused: by number, why the models cannot be served with it.
    Nothing is deleted: the number that was left can be gone back to. Raises CalibrationError if there is none such
    or it would be refused, and then nothing has changed.
    """
    versions = _versions(folder, family)
    if versions.current() == SHIPPED and (to is None or not versions.folder.is_dir()):
        raise CalibrationError(
            f"{versions.folder}: no calibration of your own is in use; the one that ships with the models is used, if "
            "there is one: see jetsel calibration list"
        )
    name = versions.before() if to is None else to
    if name == versions.current():
        raise CalibrationError(f"in use already for family {family}: {_named(name)}")
    numbers = sorted(versions.numbers())
    if name != SHIPPED and name not in numbers:
        there = ", ".join(map(str, [SHIPPED, *numbers]))
        raise CalibrationError(f"family {family} has no calibration number {name}: there are {there}")
    installed = None if name == SHIPPED else _look(versions.path(name), name, is_current=True)
    reason = refused.get(name) or (None if installed is None else installed.reason)
    if reason is not None:
        raise CalibrationError(
            f"number {name} cannot be used: {reason}. Nothing has changed; "
            "name another with --to, see: jetsel calibration list"
        )
    versions.use(name, read)
    return installed


def _named(number: int) -> str:
    return "shipped with the models" if number == SHIPPED else f"number {number}"


def _versions(folder: Path, family: str) -> Versions:
    if not is_plain(family):  # it could lead out of the folder
        raise CalibrationError(f"{family!r} is not a valid family name: {RULE}")
    return Versions(folder / family, CalibrationError)


def _look(directory: Path, number: int, *, is_current: bool) -> Installed:
    try:
        calibration, sha256 = read(directory), identity(directory)
    except CalibrationError as fault:
        return Installed(number, directory, None, str(fault), is_current)
    report = directory / REPORT
    return Installed(number, directory, calibration, None, is_current, report if report.is_file() else None, sha256)
