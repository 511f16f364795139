"""NVML, NVIDIA's library about its graphics cards: development machines. On a Jetson it starts and knows no power.

Called through ctypes, since six of its functions are enough; names and structures as in NVIDIA's nvml.h.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

from jetsel.power.sensors.rail import Dropped, Measured, RailError
from jetsel.power.sensors.sensed import Sensed, opened

LIBRARY = "libnvidia-ml.so.1"
NAME = "nvml"

_POWER_INSTANT = 186  # NVML_FI_DEV_POWER_INSTANT, mW
_UNSIGNED_INT = 1  # NVML_VALUE_TYPE_UNSIGNED_INT
_STEP_W = 1e-3  # it counts in whole milliwatts


class _Value(ctypes.Union):
    _fields_ = (("double", ctypes.c_double), ("uint", ctypes.c_uint), ("ullong", ctypes.c_ulonglong))


class _FieldValue(ctypes.Structure):  # nvmlFieldValue_t
    _fields_ = (
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency_us", ctypes.c_longlong),
        ("value_type", ctypes.c_uint),
        ("result", ctypes.c_int),
        ("value", _Value),
    )


class Library:
    """The library, started. Never stopped: others in the process may use it, and its end ends it."""

    def __init__(self, load: Callable[[str], Any]) -> None:
        """Load and start it; raises RailError where it is not there or will not start."""
        try:
            self._calls = load(LIBRARY)
        except OSError as error:
            raise RailError(f"{error}; it comes with NVIDIA's driver") from None
        self.call("nvmlInit_v2")

    def call(self, name: str, *arguments: object) -> None:
        """Call a function; raises RailError with NVML's own words where it fails."""
        function = getattr(self._calls, name, None)
        if function is None:
            raise RailError(f"{name}: this version of NVML has no such function")
        result = function(*arguments)
        if result != 0:
            raise RailError(f"{name}: {self._words(result)}")

    def devices(self) -> list[ctypes.c_void_p]:
        """Return the handle of each card; raises RailError."""
        count = ctypes.c_uint()
        self.call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        handles = [ctypes.c_void_p() for _ in range(count.value)]
        for index, handle in enumerate(handles):
            self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
        return handles

    def _words(self, result: int) -> str:
        words = getattr(self._calls, "nvmlErrorString", None)
        if words is None:
            return f"error {result}"
        words.restype = ctypes.c_char_p
        return bytes(words(result) or b"").decode("utf-8", "replace") or f"error {result}"


class Card:
    """The power of one card, as a rail."""

    def __init__(self, name: str, library: Library, handle: ctypes.c_void_p) -> None:
        """Find out which way this card gives its power; raises RailError where it gives none."""
        self.name = name
        self.where = f"{name} of {LIBRARY}"
        self.resolution_w: float | None = _STEP_W
        self._library = library
        self._handle = handle
        self._power_mw: Callable[[], int] = self._instant_mw
        try:
            self._instant_mw()
        except RailError:  # a driver from before 2023: what follows is a mean over a second from Ampere on, says nvml.h
            self._power_mw = self._usage_mw
            self._usage_mw()
        self._began_mj = 0
        self.read_uj: Callable[[], int] | None = None
        try:
            self._began_mj = self._counted_mj()
        except RailError:  # a card from before Volta
            return
        self.read_uj = self._read_uj

    def read_uw(self) -> int:
        """Return the power in microwatts; raises RailError."""
        return self._power_mw() * 1000

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

    def _instant_mw(self) -> int:
        field = _FieldValue(field=_POWER_INSTANT)
        self._library.call("nvmlDeviceGetFieldValues", self._handle, ctypes.c_int(1), ctypes.byref(field))
        if field.result != 0 or field.value_type != _UNSIGNED_INT:
            raise RailError(f"{self.where}: it does not give its power of the moment")
        return int(field.value.uint)

    def _usage_mw(self) -> int:
        power = ctypes.c_uint()
        self._library.call("nvmlDeviceGetPowerUsage", self._handle, ctypes.byref(power))
        return power.value


def sense(load: Callable[[str], Any] = ctypes.CDLL) -> Sensed:
    """Return the power of every card; what the library, or a card, does not tell is dropped with its words.

    load: gives the library of a name, an object with its functions.
    """
    try:
        library = Library(load)
        handles = library.devices()
    except RailError as error:
        return Sensed(dropped=(Dropped(NAME, str(error)),))
    names = tuple(f"gpu-{index}" for index in range(len(handles)))
    rails, dropped = opened(
        (name, partial(Card, name, library, handle)) for name, handle in zip(names, handles, strict=True)
    )
    return Sensed(rails, dropped, total=names)
