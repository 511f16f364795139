"""The daemon's own request, where it cannot be made."""

from __future__ import annotations

import pytest

from jetsel.config import Config
from jetsel.daemon.generation import Generation
from jetsel.daemon.probe import Probe
from jetsel.engines import Backends
from jetsel.image import Limits


class Entering:
    """What the probe asks of Serving."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation

    def enter(self) -> Generation:
        assert self._generation.enter()
        return self._generation


def test_a_probe_that_cannot_be_made_is_counted_out_again() -> None:
    nothing = Generation(Config(), {}, "none of it", [], Limits(1, 1), 1)
    probe = Probe(Entering(nothing), Backends())  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        probe.ask()
    assert not probe.is_waiting
    assert nothing.retire(limit_s=0) == 0, "a reload would wait for it for ever"
