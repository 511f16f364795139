"""What the configuration says of power, as plain values: `[power]` of jetsel.toml has this shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Settings(Protocol):
    """Where power is read and which rails make the total; docs/energy.md has the meaning of each key."""

    @property
    def sensor(self) -> str: ...  # noqa: D102
    @property
    def sysfs(self) -> str: ...  # noqa: D102
    @property
    def replay(self) -> str | None: ...  # noqa: D102
    @property
    def board(self) -> str | None: ...  # noqa: D102
    @property
    def total(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def labels(self) -> Mapping[str, str]: ...  # noqa: D102
    @property
    def rate_hz(self) -> float: ...  # noqa: D102
    @property
    def jtop(self) -> bool: ...  # noqa: D102
