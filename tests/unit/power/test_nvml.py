"""NVML: through functions with C's calling convention that answer as a card's, a Jetson's and an old driver's do."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from jetsel.power.sensors import nvml
from jetsel.power.sensors.rail import Measured

NOT_SUPPORTED, WORDS = 3, b"Not Supported"


def library(cards: int = 1, usage_mw: int | None = None, counted_mj: list[int] | None = None) -> Callable[[str], Any]:
    """What loads a library of so many cards; None: the card does not support that way to its power."""

    def count(pointer: int) -> int:
        ctypes.c_uint.from_address(pointer).value = cards
        return 0

    def handle(index: int, pointer: int) -> int:
        ctypes.c_void_p.from_address(pointer).value = 0x1000 + index
        return 0

    def usage(handle: int, pointer: int) -> int:
        ctypes.c_uint.from_address(pointer).value = (usage_mw or 0) + (handle & 0xFFF)
        return NOT_SUPPORTED if usage_mw is None else 0

    def counted(handle: int, pointer: int) -> int:
        assert counted_mj is not None
        ctypes.c_ulonglong.from_address(pointer).value = counted_mj.pop(0)
        return 0

    integer, pointer = ctypes.c_int, ctypes.c_void_p
    calls = SimpleNamespace(
        nvmlInit_v2=ctypes.CFUNCTYPE(integer)(lambda: 0),
        nvmlErrorString=ctypes.CFUNCTYPE(pointer, integer)(
            lambda _: ctypes.cast(ctypes.c_char_p(WORDS), pointer).value
        ),
        nvmlDeviceGetCount_v2=ctypes.CFUNCTYPE(integer, pointer)(count),
        nvmlDeviceGetHandleByIndex_v2=ctypes.CFUNCTYPE(integer, ctypes.c_uint, pointer)(handle),
        nvmlDeviceGetPowerUsage=ctypes.CFUNCTYPE(integer, pointer, pointer)(usage),
    )
    if counted_mj is not None:
        calls.nvmlDeviceGetTotalEnergyConsumption = ctypes.CFUNCTYPE(integer, pointer, pointer)(counted)
    return lambda _: calls


def test_every_card_is_a_rail_and_an_old_one_does_not_count() -> None:
    detected = nvml.detect(library(cards=2, usage_mw=68_400))
    assert [(rail.name, rail.read_uw()) for rail in detected.rails] == [("gpu-0", 68_400_000), ("gpu-1", 68_401_000)]
    assert detected.rails[0].measure() == Measured(68.4, None, None)
    assert [rail.read_uj for rail in detected.rails] == [None, None]
    assert (detected.total, detected.dropped) == (("gpu-0", "gpu-1"), ())


def test_a_card_that_counts_energy_gives_what_it_counted_since_it_was_opened() -> None:
    (rail,) = nvml.detect(library(usage_mw=68_400, counted_mj=[5_000_000_000, 5_000_000_123])).rails
    assert rail.read_uj is not None
    assert rail.read_uj() == 123_000


def test_a_jetson_starts_the_library_and_has_no_power_in_it() -> None:
    detected = nvml.detect(library())
    assert detected.rails == ()
    assert detected.total == ("gpu-0",)  # it would be, so there is no total without it
    assert [(each.name, "Not Supported" in each.reason) for each in detected.dropped] == [("gpu-0", True)]


def test_no_library_is_said_with_where_it_comes_from() -> None:
    (dropped,) = nvml.detect(lambda _: ctypes.CDLL("libno-such-library.so.1")).dropped
    assert dropped.name == "nvml"
    assert "libno-such-library.so.1" in dropped.reason
    assert "NVIDIA's driver" in dropped.reason
