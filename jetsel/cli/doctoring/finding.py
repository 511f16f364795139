"""One thing that a doctor found, and what all checks look at."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from jetsel.config import Config
from jetsel.errors import JetselError

if TYPE_CHECKING:
    from jetsel.daemon.generation import Generation
    from jetsel.engines.hosting.interpreters import Probe

HOSTED = {"tensorrt": "tensorrt", "onnxruntime-hosted": "onnxruntime"}
"""What runs in the engine host, by the name of the backend in jetsel.toml."""

State = Literal["ok", "info", "warning", "failed"]


class Finding(NamedTuple):
    """One line. info: neither good nor bad. repair: what helps; None where all is well, or what is said tells it."""

    name: str
    state: State
    said: str
    repair: str | None = None


@dataclass
class Subject:
    """The installation: its configuration, and what several checks need, found once.

    fault: why the configuration cannot be read; the defaults stand in for it then. root: the folder that /proc and /etc
    lie in.
    """

    path: Path | None
    config: Config
    fault: str | None = None
    root: Path = Path("/")

    @property
    def used(self) -> set[str]:
        """The backends that the configuration names, as it names them."""
        return {self.config.models.backend, *self.config.models.backends.values()}

    @cached_property
    def probes(self) -> dict[str, list[Probe]]:
        """Every candidate for the engine host, by what is to run in it; the first usable one is taken."""
        from jetsel.engines.hosting import interpreters

        chosen = self.config.host.interpreter
        return {
            backend: interpreters.probe_all(interpreters.candidates(backend, chosen), backend)
            for backend in HOSTED.values()
        }

    def taken(self, backend: str) -> Probe | None:
        """The interpreter that hosts "tensorrt" or "onnxruntime"; None where none can."""
        return next((probe for probe in self.probes[backend] if probe.usable), None)

    @cached_property
    def generation(self) -> Generation | JetselError:
        """What a daemon would serve, not loaded; or why it would not start."""
        from jetsel.daemon.generation import build

        logging.getLogger("jetsel").addHandler(logging.NullHandler())  # what it logs is told as findings
        try:
            return build(self.config)
        except JetselError as error:
            return error


class Check(NamedTuple):
    """One section, and what looks at it."""

    section: str
    look: Callable[[Subject], Iterable[Finding]]


def size(count: float) -> str:
    """Return a number of bytes as people read it."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
