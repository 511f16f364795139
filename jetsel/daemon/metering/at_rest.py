"""The idle power in use: that of the board's power mode, read again when its file is another or the mode is."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from jetsel.config import Power, power_folder
from jetsel.errors import CalibrationError
from jetsel.events import event
from jetsel.power.idle import Idle, file_name, load
from jetsel.power.ledger import Ledger
from jetsel.power.sampling.sampler import Sampler

log = logging.getLogger("jetsel.power")

_Seen = tuple[Path, int, int]


class AtRest:
    """What `jetsel power calibrate` measured here: the ledger deducts it, the sampler is told the sensor's period.

    Any thread may call.
    """

    def __init__(self, power: Power, sampler: Sampler, ledger: Ledger) -> None:
        """Begin with none: the sensors, and with them the board's name, are not found yet."""
        self.idle: Idle | None = None
        self.reason: str | None = "the sensors are being looked for"
        self._folder = power_folder(power)
        self._sampler = sampler
        self._ledger = ledger
        self._lock = threading.Lock()
        self._seen: _Seen | None = None  # the file that was read last, as it was

    def read(self, board: str | None, power_mode: str | None, rails: tuple[str, ...]) -> None:
        """Use what was measured on this board in this power mode, of these rails; else none, and `reason` says why."""
        with self._lock:
            path = self._folder / file_name(board, power_mode)
            self._seen = _look_at(path)
            try:
                self.idle, self.reason = load(self._folder, board, power_mode, rails), None
            except CalibrationError as error:
                log.warning("energies are not measured: %s", error, extra=event("idle-power-refused", path=path))
                # Every answer carries it: which file that is, the log says, and doctor.
                self.idle, self.reason = None, str(error).removeprefix(f"{path}: ")
            if self.idle is not None:
                self._sampler.tell(self.idle.update_period_ms)
            self._ledger.idle = self.idle

    def follow(self, board: str | None, power_mode: str | None, rails: tuple[str, ...]) -> None:
        """Read it anew where there is another file for the power mode of now than the one that is in use.

        Where there is none for this mode, what is in use stays: conditions tell that it is of another one.
        """
        seen = _look_at(self._folder / file_name(board, power_mode))
        if seen is not None and seen != self._seen:
            self.read(board, power_mode, rails)
            if self.idle is not None:
                idle, told = self.idle, event("idle-power", mean_w=self.idle.mean_w)
                log.info("idle power is %.2f W now, as measured at %s", idle.mean_w, idle.measured_at, extra=told)


def _look_at(path: Path) -> _Seen | None:
    """Tell one state of a file from another; None where there is none to see."""
    try:
        found = path.stat()
    except OSError:
        return None
    return path, found.st_ino, found.st_mtime_ns
