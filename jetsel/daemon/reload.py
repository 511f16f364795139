"""A reload: the next snapshot is read and loaded beside the requests, then takes the place of the one that serves."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable

from jetsel.config import Config
from jetsel.daemon.changes import changes, for_next_start
from jetsel.daemon.current import Current
from jetsel.daemon.loading import Tell, load
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.snapshot import Snapshot, read_snapshot
from jetsel.engines import Backends
from jetsel.errors import JetselError, ReloadFailedError, ShuttingDownError
from jetsel.events import event
from jetsel.logs import set_level
from jetsel.power.finding import check as check_power

log = logging.getLogger("jetsel.daemon")

SWITCH_S = 0.0005
"""A request waits no longer for the interpreter while a reload works; CPython's own is 5 ms, which costs less."""


class Reload:
    """Reads everything again and swaps the snapshot: taken as a whole, or refused as a whole."""

    def __init__(
        self,
        current: Current,
        backends: Backends,
        metering: Metering,
        reread: Callable[[], Config],
        stopping: threading.Event,
        tell: Tell,
    ) -> None:
        """reread: gives the configuration. stopping: ends a reload that is under way. tell: is given its progress."""
        self._current = current
        self._started = current.snapshot.config
        self._backends = backends
        self._metering = metering
        self._reread = reread
        self._stopping = stopping
        self._tell = tell

    def __call__(self) -> list[str]:
        """Return what is different, for people; one thread at a time calls.

        Raises ReloadFailedError, and ShuttingDownError once the daemon stops: then nothing has changed.
        """
        before = self._current.snapshot
        usual_s = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        try:
            following = self._following(before)
        finally:
            sys.setswitchinterval(usual_s)
        config = following.config
        changed = changes(before, following)
        self._metering.serve(following.families, config.power)
        self._current.swap(following)
        for section in for_next_start(self._started, config):
            told = event("for-next-start", section=section)
            log.warning("changes under [%s] take effect at the next start", section, extra=told)
        set_level(config.log.level)
        return changed

    def _following(self, before: Snapshot) -> Snapshot:
        """Return the next snapshot, loaded."""
        following, is_loaded = None, False
        try:
            config = self._reread()
            check_power(config.power)
            following = read_snapshot(config, before)
            load(following, self._backends, self._tell, self._stopping, before)
            is_loaded = True
        except ShuttingDownError:
            raise
        except JetselError as error:
            raise ReloadFailedError(f"the running configuration stays: {error}") from None
        finally:
            if following is not None and not is_loaded:
                following.close(*self._current.standing)
        return following
