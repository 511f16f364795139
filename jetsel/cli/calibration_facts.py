"""What a calibration says, as lines of a table: every field that it has, whatever they are, and two side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

MISSING = object()


class Difference(NamedTuple):
    """One fact that two calibrations do not share; None where one has not got it."""

    fact: str
    before: str | None
    after: str | None


def facts(plain: dict[str, Any]) -> dict[str, str]:
    """Return what `as_plain` gave as words, by dotted names: {"temperatures": {"xs": 0.9}} -> temperatures.xs."""
    return {name: said(value) for name, value in _flat(plain).items()}


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[Difference]:
    """Return what differs between two calibrations as `as_plain` gave them, in the order of their fields."""
    one, other = _flat(before), _flat(after)
    found = []
    for name in dict.fromkeys([*one, *other]):
        values = one.get(name, MISSING), other.get(name, MISSING)
        if values[0] != values[1]:
            found.append(Difference(name, *(None if value is MISSING else said(value) for value in values)))
    return found


def said(value: Any) -> str:
    """Return one value in words; a number with six digits."""
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return " ".join(f"{key} {said(part)}" for key, part in value.items()) or "none"
    if isinstance(value, list | tuple):
        between = "; " if any(isinstance(part, dict | list | tuple) for part in value) else ", "
        return between.join(map(said, value)) or "none"
    return str(value)


def _flat(plain: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in plain.items():
        name = f"{prefix}{key}"
        flat |= _flat(value, f"{name}.") if isinstance(value, dict) and value else {name: value}
    return flat
