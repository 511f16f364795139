"""Axes: where the round numbers stand between two values, and where on the drawing a value falls."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct

STEPS = (1, 2, 5)  # times a power of ten: the round numbers


def linear_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return the multiples, in [low, high], of the least round step that cuts it into at most `about` intervals.

    A round step is 1, 2 or 5 times a power of ten; where fewer than two of its multiples fall in [low, high], the next
    smaller one is taken. Raises ValueError where high is not above low.
    """
    if not high > low:
        raise ValueError(f"ticks need low < high, not {low} and {high}")
    step = _round_up((high - low) / about)
    found = _multiples(step, low, high)
    return found if len(found) > 1 else _multiples(_round_up(0.4 * step), low, high)


def log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten in [low, high], the powers alone where those are more than seven.

    Where fewer than three fall in it, the linear ticks. Raises ValueError unless 0 < low < high.
    """
    if not 0 < low < high:
        raise ValueError(f"a logarithmic axis needs 0 < low < high, not {low} and {high}")
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    inside = [_clean(step * 10.0**power) for power in powers for step in STEPS if low <= step * 10.0**power <= high]
    if len(inside) < 3:
        return linear_ticks(low, high)
    if len(inside) <= 7:
        return inside
    decades = [value for value in inside if round(math.log10(value), 9).is_integer()]
    return decades[:: math.ceil(len(decades) / 7)]


def written(value: float) -> str:
    """A tick's label: as few digits as it needs, no exponent."""
    text = f"{_clean(value):.12f}".rstrip("0").rstrip(".")
    return text.replace("-", "\u2212") if text not in ("-0", "") else "0"


class Axis(Struct, frozen=True):
    """One axis: values from low to high on the drawing from start to end (units of the drawing)."""

    name: str
    low: float
    high: float
    start: float
    end: float
    log: bool = False

    @classmethod
    def over(cls, name: str, values: Iterable[float], start: float, end: float, *, from_zero: bool = False) -> Axis:
        """A linear axis with room around the finite values; `from_zero` begins (or ends) it at zero."""
        low, high = _range(values, from_zero)
        room = 0.06 * (high - low)
        keep_low, keep_high = from_zero and low == 0, from_zero and high == 0
        return cls(name, low if keep_low else low - room, high if keep_high else high + room, start, end)

    @classmethod
    def log_over(cls, name: str, values: Iterable[float], start: float, end: float) -> Axis:
        """A logarithmic axis with room around the positive finite values."""
        known = [v for v in values if math.isfinite(v) and v > 0] or [1.0]
        room = max((max(known) / min(known)) ** 0.06, 1.1)
        return cls(name, min(known) / room, max(known) * room, start, end, log=True)

    def at(self, value: float) -> float:
        """Where the value falls on the drawing."""
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """The round numbers on it."""
        return log_ticks(self.low, self.high) if self.log else linear_ticks(self.low, self.high, about)


def _range(values: Iterable[float], from_zero: bool) -> tuple[float, float]:
    known = [v for v in values if math.isfinite(v)] + ([0.0] if from_zero else [])
    low, high = min(known, default=0.0), max(known, default=1.0)
    if low == high:  # one value alone: give it room
        half = abs(low) / 10 or 0.5
        return (0.0, 2 * half) if from_zero else (low - half, high + half)
    return low, high


def _multiples(step: float, low: float, high: float) -> list[float]:
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [_clean(n * step) for n in range(first, last + 1)]


def _round_up(step: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not below `step`."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(s * power for s in (*STEPS, 10) if s * power >= step * (1 - 1e-9))


def _clean(value: float) -> float:
    return float(f"{value:.9g}")
