"""The owner's calibrations of one family: numbered directories that never change, and a link to the one in use."""

from __future__ import annotations

import contextlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from jetsel.errors import CalibrationError
from jetsel.premodel.artefact import Calibration
from jetsel.premodel.coding import encode
from jetsel.premodel.storage import identify, load, not_installed, only_writer, write_aside
from jetsel.store import flush

KEPT = 10  # calibrations, the one in use and the one before it beside them where they are older
SHIPPED = 0  # stands for the one that came with the models, which lies elsewhere: no link says so
CURRENT, REPORT = "current", "report.html"
BEFORE = "before"  # in each directory: the number that was in use when it was installed
ASIDE = ".jetsel-"  # begins every name that a command that was cut off may leave; the next one clears it up
NEW, LINK, BACK, OLD = f"{ASIDE}new", f"{ASIDE}link", f"{ASIDE}back", f"{ASIDE}old-"

_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_FAMILY = re.compile(r"[a-z0-9][a-z0-9_.-]*")  # as a model's manifest may call it: never a way out of the folder


@dataclass(frozen=True, eq=False)
class Installed:
    """One calibration of the history; where it cannot be used, `calibration` is None and `reason` says why.

    sha256: of every copy of it, on any device; None where it cannot be used.
    """

    number: int
    directory: Path
    calibration: Calibration | None
    reason: str | None
    is_current: bool
    report: Path | None
    sha256: str | None = None

    @property
    def called(self) -> str:
        """Which one it is, in words."""
        name = _named(self.number)
        return name if self.calibration is None else f"{name}, of {self.calibration.created}"

    def usable(self) -> Calibration:
        """Return the calibration; raises CalibrationError with the reason where there is none."""
        if self.calibration is None:
            raise CalibrationError(self.reason)
        return self.calibration


def install(calibration: Calibration, folder: Path, family: str, report: str | None = None) -> Installed:
    """Put a calibration into `folder`/`family` under the next number, with its report (HTML), and have it used.

    It is written aside, flushed, read back, renamed to its number, and only then the link is replaced: killed or out of
    space at any moment, `current` gives the one before, whole. Of those that are older the last 10 are kept.
    Raises CalibrationError that names the repair, and then nothing has changed.
    """
    place = _place(folder, family)
    if calibration.family != family:
        raise CalibrationError(f"the calibration is of family {calibration.family}, not {family}: calibrate {family}")
    files = encode(calibration) | ({} if report is None else {REPORT: report.encode()})
    try:
        if not place.is_dir():
            place.mkdir(parents=True)
            flush(place.parent)
        with only_writer(place):
            _clear_up(place)
            was = _pointed(place)
            number = max(was, *_numbers(place), 0) + 1
            try:
                _put(place, number, files | {BEFORE: f"{was}\n".encode()})
            except BaseException:
                _undo(place, number, was)
                raise
            _discard_the_oldest(place, {number, was})
    except OSError as fault:
        raise not_installed(place, fault) from fault
    directory = place / str(number)
    return Installed(number, directory, calibration, None, True, None if report is None else directory / REPORT)


def current(folder: Path, family: str) -> Installed | None:
    """Return the calibration in use, with its reason where it is refused; None where none of the owner's is.

    Raises CalibrationError where the link itself is none of ours or cannot be read.
    """
    place = _place(folder, family)
    while number := _pointed(place):
        found = _look(place / str(number), number, is_current=True)
        if found.reason is None or _pointed(place) == number:  # otherwise it was replaced while being read
            return found
    return None


def shipped(directory: Path) -> Installed | None:
    """Return the calibration that came with a family's models, in the same shape; None where none did."""
    try:
        if not directory.is_dir():
            return None
    except OSError as fault:  # a directory that this user may not enter
        return Installed(SHIPPED, directory, None, f"{directory}: {fault.strerror}", False, None)
    return _look(directory, SHIPPED, is_current=False)


def history(folder: Path, family: str) -> list[Installed]:
    """Return every calibration that is kept, the newest first. Raises CalibrationError where none can be listed."""
    place = _place(folder, family)
    used = _pointed(place)
    numbers = sorted({*_numbers(place), *([used] if used else [])}, reverse=True)
    return [_look(place / str(number), number, is_current=number == used) for number in numbers]


def before(folder: Path, family: str) -> int:
    """Return the number that `rollback` would go back to; 0 for the one that came with the models.

    That is the one that was in use when the current one was installed, so never one that was rolled back from; where it
    is no longer kept, the next lower number. Raises CalibrationError where nothing is installed.
    """
    place = _place(folder, family)
    try:
        return _before(place)
    except OSError as fault:
        raise CalibrationError(f"{place}: cannot be read ({fault.strerror}); check the owner and mode") from fault


def rollback(folder: Path, family: str, to: int | None = None) -> Installed | None:
    """Have the calibration before the current one used, or the one numbered `to`; None where that is the shipped one.

    Nothing is deleted: the number that was left can be gone back to. Raises CalibrationError where there is none such
    or it would be refused, and then nothing has changed.
    """
    place = _place(folder, family)
    try:
        with only_writer(place):
            _clear_up(place)
            wanted = _before(place) if to is None else to
            if wanted == _pointed(place):
                raise CalibrationError(f"in use already for family {family}: {_named(wanted)}")
            found = None if wanted == SHIPPED else _look(place / str(wanted), wanted, is_current=True)
            if found is not None and found.reason is not None:
                raise CalibrationError(
                    f"number {wanted} cannot be used: {found.reason}. Nothing has changed; "
                    "name another with --to, see: jetsel calibration list"
                )
            _point(place, wanted)
    except FileNotFoundError as fault:
        raise _none_installed(place) from fault
    except OSError as fault:
        raise not_installed(place, fault) from fault
    return found


def _before(place: Path) -> int:
    used, numbers = _pointed(place), _numbers(place)
    if used == SHIPPED:
        raise _none_installed(place)
    try:
        with (place / str(used) / BEFORE).open("rb") as file:
            noted = int(file.read(16))
    except (FileNotFoundError, NotADirectoryError, ValueError):  # it is damaged itself
        noted = -1
    return noted if noted in (SHIPPED, *numbers) else max([n for n in numbers if n < used], default=SHIPPED)


def _none_installed(place: Path) -> CalibrationError:
    return CalibrationError(
        f"{place}: no calibration of the owner's is in use; what came with the models is, if anything: "
        "see jetsel calibration list"
    )


def _named(number: int) -> str:
    return "shipped with the models" if number == SHIPPED else f"number {number}"


def _place(folder: Path, family: str) -> Path:
    if not _FAMILY.fullmatch(family):
        raise CalibrationError(f"{family!r} is no name of a family: letters a to z, digits, and _ . - after the first")
    return folder / family


def _pointed(place: Path) -> int:
    """Return the number in use, 0 where the link is not there. Raises CalibrationError where it is none of ours."""
    link = place / CURRENT
    try:
        target = str(link.readlink())
    except (FileNotFoundError, NotADirectoryError):
        return SHIPPED
    except PermissionError as fault:
        raise CalibrationError(f"{link}: cannot be read ({fault.strerror}); check the owner and mode") from fault
    except OSError as fault:
        raise CalibrationError(
            f"{link}: is no link ({fault.strerror}); remove it, then roll back or install"
        ) from fault
    if not _NUMBER.fullmatch(target):
        raise CalibrationError(f"{link}: leads to {target!r}, not to a number; remove it, then roll back or install")
    return int(target)


def _numbers(place: Path) -> list[int]:
    try:
        return sorted(int(entry.name) for entry in place.iterdir() if _NUMBER.fullmatch(entry.name) and entry.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as fault:
        raise CalibrationError(f"{place}: cannot be listed ({fault.strerror}); check the owner and mode") from fault


def _look(directory: Path, number: int, *, is_current: bool) -> Installed:
    report = directory / REPORT
    try:
        found, sha256, reason = load(directory), identify(directory), None
        has_report = report.is_file()
    except (CalibrationError, OSError) as fault:  # OSError: a directory that this user may not enter
        found, sha256, reason, has_report = None, None, str(fault), False
    return Installed(number, directory, found, reason, is_current, report if has_report else None, sha256)


def _put(place: Path, number: int, files: dict[str, bytes]) -> None:
    write_aside(place / NEW, files)
    (place / LINK).symlink_to(str(number))  # whatever needs room is done before the first rename
    (place / NEW).rename(place / str(number))
    flush(place)
    (place / LINK).replace(place / CURRENT)
    flush(place)


def _undo(place: Path, number: int, was: int) -> None:
    """Take back what `_put` did before it failed; what cannot be, the next command clears up."""
    with contextlib.suppress(OSError, CalibrationError):
        if _pointed(place) == number:
            _point(place, was)
        _discard(place, number)
        _clear_up(place)


def _point(place: Path, number: int) -> None:
    """Have the link lead to this number, at once and on the disk; where that fails, to what it led to before."""
    was = _pointed(place)
    try:
        _lead(place, number)
        flush(place)
    except BaseException:
        with contextlib.suppress(OSError, CalibrationError):
            if _pointed(place) != was:
                _lead(place, was)
        raise


def _lead(place: Path, number: int) -> None:
    if number == SHIPPED:
        (place / CURRENT).unlink(missing_ok=True)
    else:
        (place / BACK).symlink_to(str(number))
        (place / BACK).replace(place / CURRENT)


def _clear_up(place: Path) -> None:
    """Remove what a command that was cut off left. Where it left a link aside, its number never came into use."""
    link = place / LINK
    if link.is_symlink():
        if _NUMBER.fullmatch(str(link.readlink())):
            _discard(place, int(str(link.readlink())))
        link.unlink()
    (place / BACK).unlink(missing_ok=True)
    for entry in [entry for entry in place.iterdir() if entry.name == NEW or entry.name.startswith(OLD)]:
        shutil.rmtree(entry)


def _discard(place: Path, number: int) -> None:
    """Remove a calibration; its number goes first, so that no half of one is ever listed."""
    aside = place / f"{OLD}{number}"
    with contextlib.suppress(FileNotFoundError):
        (place / str(number)).rename(aside)
        shutil.rmtree(aside)


def _discard_the_oldest(place: Path, kept: set[int]) -> None:
    with contextlib.suppress(OSError, CalibrationError):  # what stays, the next installation removes
        for number in set(_numbers(place)[:-KEPT]) - kept:
            _discard(place, number)
