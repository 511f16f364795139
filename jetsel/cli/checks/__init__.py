"""What `jetsel doctor` looks at: one file for each part of the installation, one function for each section."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from jetsel.config import Config

if TYPE_CHECKING:
    from jetsel.daemon.snapshot import Snapshot
    from jetsel.engines.hosting.interpreters import Probe


State = Literal["ok", "info", "warning", "failed"]


class Finding(NamedTuple):
    """One line. info: neither good nor bad. repair: what helps; None where all is well, or what is said tells it."""

    name: str
    state: State
    said: str
    repair: str | None = None


@dataclass
class Subject:
    """The installation. fault: why its configuration cannot be read; the defaults stand in for it then."""

    path: Path | None
    config: Config
    fault: str | None = None

    @property
    def used(self) -> set[str]:
        """The backends that the configuration names, as it names them."""
        return {self.config.models.backend, *self.config.models.backends.values()}

    @cached_property
    def tensorrt(self) -> Probe:
        """The Python that can run TensorRT, or the likeliest one, which says what it lacks."""
        from jetsel.engines.hosting.interpreters import candidates, probe_all

        found = probe_all(candidates("tensorrt", self.config.host.interpreter), "tensorrt")
        return next((probe for probe in found if probe.usable), found[0])

    @cached_property
    def generation(self) -> Snapshot:
        """What a daemon would serve, not loaded; raises JetselError where it would not start."""
        from jetsel.daemon.snapshot import read_snapshot

        logging.getLogger("jetsel").addHandler(logging.NullHandler())  # what it logs is told as findings
        return read_snapshot(self.config)
