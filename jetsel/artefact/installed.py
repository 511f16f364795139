"""The owner's calibrations of one family: numbered directories that never change, and a link to the one in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jetsel.artefact.calibration import ANSWERS, Calibration
from jetsel.artefact.coding import encode, read, read_identity
from jetsel.base.errors import CalibrationError
from jetsel.base.files import write
from jetsel.base.names import RULE, is_plain
from jetsel.base.versions import NONE, Versions

SHIPPED = NONE  # the calibration shipped with the models, which is in use if there is no link
REPORT = "report.html"


@dataclass(frozen=True, eq=False)
class Installed:
    """One installed calibration. If it cannot be used, `calibration` and sha256 are None, and `reason` says why.

    number: rises with each installation; SHIPPED: it came with the models. is_current: True if it is in use. report:
    HTML file, None without one. sha256: the same for every copy of it on any device.
    """

    number: int
    directory: Path
    calibration: Calibration | None
    reason: str | None
    is_current: bool
    report: Path | None = None
    sha256: str | None = None

    @property
    def description(self) -> str:
        """Number and date of the calibration, in words."""
        name = _number_in_words(self.number)
        return name if self.calibration is None else f"{name}, of {self.calibration.created}"

    def usable_calibration(self) -> Calibration:
        """Return the calibration. Raises CalibrationError with the reason if it cannot be used."""
        if self.calibration is None:
            raise CalibrationError(self.reason)
        return self.calibration


def install(
    calibration: Calibration, folder: Path, family: str, report: str | None = None, answers: bytes | None = None
) -> Installed:
    """Install a calibration in `folder`/`family` under the next number, with its report (HTML), and put it into use.

    answers: the content of the file ANSWERS, for fitting on other machines; None: no such file. If the process is
    killed or space runs out, the calibration before stays in use. The last 10 older ones are kept. Raises
    CalibrationError that names the repair; nothing has changed then.
    """
    versions = _versions(folder, family)
    if calibration.family != family:
        raise CalibrationError(f"the calibration is of family {calibration.family}, not {family}: calibrate {family}")
    extras = {REPORT: None if report is None else report.encode(), ANSWERS: answers}
    files = encode(calibration) | {name: content for name, content in extras.items() if content is not None}

    def write_files(directory: Path) -> None:
        for name, content in files.items():
            write(directory / name, content)
        read(directory)

    number = versions.install(write_files)
    return _read_installed(versions.path(number), number, is_current=True)


def current(folder: Path, family: str) -> Installed | None:
    """Return the owner's calibration of the family that is in use, usable or not; None if the shipped one is.

    Raises CalibrationError if the link is foreign or unreadable.
    """
    versions = _versions(folder, family)
    number = versions.current()
    return None if number == SHIPPED else _read_installed(versions.path(number), number, is_current=True)


def shipped(directory: Path, labels_sha256: str | None = None) -> Installed | None:
    """Return the calibration that came with a family's models, None if there is none.

    labels_sha256: hash of the family's labels, None to accept any. A family with a trained head shares the folder of
    its backbone, whose calibration is for other classes and is not returned.
    """
    installed = _read_installed(directory, SHIPPED, is_current=False) if directory.is_dir() else None
    calibration = None if installed is None else installed.calibration
    is_other = calibration is not None and labels_sha256 not in (None, calibration.labels_sha256)
    return None if is_other else installed


def history(folder: Path, family: str) -> list[Installed]:
    """Return all installed calibrations, the newest first. Raises CalibrationError if they cannot be listed."""
    versions = _versions(folder, family)
    used = versions.current()
    numbers = sorted({*versions.numbers(), used} - {SHIPPED}, reverse=True)
    return [_read_installed(versions.path(number), number, is_current=number == used) for number in numbers]


def rollback(folder: Path, family: str, to: int | None, refused: Mapping[int, str]) -> Installed | None:
    """Put the previous calibration (to: None), or the one numbered `to`, into use; return it, None for the shipped.

    refused: number -> why the models cannot be served with it. Nothing is deleted, so a later rollback can undo this
    one. Raises CalibrationError if there is no such calibration or it would be rejected; nothing has changed then.
    """
    versions = _versions(folder, family)
    if versions.current() == SHIPPED and (to is None or not versions.folder.is_dir()):
        raise CalibrationError(f"family {family} uses no calibration of your own: see jetsel calibration list")
    number = versions.before() if to is None else to
    if number == versions.current():
        raise CalibrationError(f"in use already for family {family}: {_number_in_words(number)}")
    numbers = sorted(versions.numbers())
    if number != SHIPPED and number not in numbers:
        existing = ", ".join(map(str, [SHIPPED, *numbers]))
        raise CalibrationError(f"family {family} has no calibration number {number}: there are {existing}")
    installed = None if number == SHIPPED else _read_installed(versions.path(number), number, is_current=True)
    reason = refused.get(number) or (None if installed is None else installed.reason)
    if reason is not None:
        raise CalibrationError(f"number {number} cannot be used: {reason}; choose another with --to")
    versions.use(number, read)
    return installed


def _number_in_words(number: int) -> str:
    return "shipped with the models" if number == SHIPPED else f"number {number}"


def _versions(folder: Path, family: str) -> Versions:
    if not is_plain(family):  # other names could lead out of the folder
        raise CalibrationError(f"{family!r} is not a valid family name: {RULE}")
    return Versions(folder / family, CalibrationError)


def _read_installed(directory: Path, number: int, *, is_current: bool) -> Installed:
    try:
        calibration, sha256 = read(directory), read_identity(directory)
    except CalibrationError as fault:
        return Installed(number, directory, None, str(fault), is_current)
    report = directory / REPORT
    return Installed(number, directory, calibration, None, is_current, report if report.is_file() else None, sha256)
