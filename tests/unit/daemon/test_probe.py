"""The daemon's own request, where it cannot be made."""

from __future__ import annotations

import pytest

from jetsel.config import Config
from jetsel.daemon.current import Current
from jetsel.daemon.probe import Probe
from jetsel.daemon.snapshot import Snapshot
from jetsel.engines import Backends
from jetsel.image import Limits


def test_a_probe_that_cannot_be_made_is_counted_out_again() -> None:
    nothing = Snapshot(Config(), {}, "none of it", [], Limits(1, 1), 1)
    current = Current(nothing)
    probe = Probe(current, Backends())
    with pytest.raises(KeyError):
        probe.ask()
    assert not probe.is_waiting
    current.swap(Snapshot(Config(), {}, "another", [], Limits(1, 1), 1))
    assert nothing not in current.standing
