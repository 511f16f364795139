"""NVML, NVIDIA's library about its graphics cards: development machines. On a Jetson it starts and knows no power.

Called through ctypes, since six of its functions are enough; names as in NVIDIA's nvml.h.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

from jetsel.power.sensors.rail import Detected, Dropped, Measured, RailError, opened

LIBRARY = "libnvidia-ml.so.1"
NAME = "nvml"

_STEP_W = 1e-3  # it counts in whole milliwatts


class Library:
    """The library, started. Never stopped: others in the process may use it, and its end ends it."""

    def __init__(self, load: Callable[[str], Any]) -> None:
        """Load and start it; raises RailError if it is not there or will not start."""
        try:
            self._calls = load(LIBRARY)
        except OSError as error:
            raise RailError(f"{error}; it comes with NVIDIA's driver") from None
        self._calls.nvmlErrorString.restype = ctypes.c_char_p
        self.call("nvmlInit_v2")

    def call(self, name: str, *arguments: object) -> None:
        """Call a function; raises RailError with NVML's own words if it fails."""
        try:
            result = getattr(self._calls, name)(*arguments)
        except AttributeError:
            raise RailError(f"{name}: this version of NVML has no such function") from None
        if result != 0:
            raise RailError(f"{name}: {self._calls.nvmlErrorString(result).decode()}")

    def devices(self) -> list[ctypes.c_void_p]:
        """Return the handle of each card; raises RailError."""
        count = ctypes.c_uint()
        self.call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        handles = [ctypes.c_void_p() for _ in range(count.value)]
        for index, handle in enumerate(handles):
            self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
        return handles


class Card:
    """The power of one card, as a rail: a mean over a second from Ampere on (nvml.h). Since Volta it counts energy."""

    def __init__(self, name: str, library: Library, handle: ctypes.c_void_p) -> None:
        """Find out whether this card gives its power, and counts its energy; raises RailError if it does not."""
        self.name = name
        self.where = f"{name} of {LIBRARY}"
        self.resolution_w: float | None = _STEP_W
        self._library = library
        self._handle = handle
        self.read_uw()
        self._began_mj = 0
        self.read_uj: Callable[[], int] | None = None
        try:
            self._began_mj = self._counted_mj()
        except RailError:  # a card from before Volta
            return
        self.read_uj = self._read_uj

    def read_uw(self) -> int:
        """Return the power in microwatts; raises RailError."""
        power_mw = ctypes.c_uint()
        self._library.call("nvmlDeviceGetPowerUsage", self._handle, ctypes.byref(power_mw))
        return power_mw.value * 1000

    def measure(self) -> Measured:
        """Return the power; NVML knows neither voltage nor current; raises RailError."""
        return Measured(self.read_uw() / 1e6, None, None)

    def close(self) -> None:
        """Nothing is held open for one card."""

    def _read_uj(self) -> int:
        return (self._counted_mj() - self._began_mj) * 1000

    def _counted_mj(self) -> int:
        """Return the energy since the driver was loaded; raises RailError."""
        counted = ctypes.c_ulonglong()
        self._library.call("nvmlDeviceGetTotalEnergyConsumption", self._handle, ctypes.byref(counted))
        return counted.value


def detect(load: Callable[[str], Any] = ctypes.CDLL) -> Detected:
    """Return the power of every card; what the library, or a card, does not tell is dropped with its words.

    load: gives the library of a name, an object with its functions.
    """
    try:
        library = Library(load)
        handles = library.devices()
    except RailError as error:
        return Detected(dropped=(Dropped(NAME, str(error)),))
    names = tuple(f"gpu-{index}" for index in range(len(handles)))
    rails, dropped = opened(
        (name, partial(Card, name, library, handle)) for name, handle in zip(names, handles, strict=True)
    )
    return Detected(rails, dropped, total=names)
