"""Which generation answers now, and how a reload has the next one take over without losing a request."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from jetsel.config import Config
from jetsel.daemon.changes import changes, for_next_start
from jetsel.daemon.generation import Generation, Hear, build
from jetsel.daemon.logs.handler import set_level
from jetsel.daemon.metering.metering import Metering
from jetsel.engines import Backends
from jetsel.errors import JetselError, ReloadFailedError, ShuttingDownError
from jetsel.events import event
from jetsel.power.finding import check as check_power

log = logging.getLogger("jetsel.daemon")


class Serving:
    """The generation that new requests enter, and those before it that still have requests to answer."""

    def __init__(
        self,
        config: Config,
        generation: Generation,
        backends: Backends,
        metering: Metering,
        reread: Callable[[], Config],
        stopping: threading.Event,
        hear: Hear,
    ) -> None:
        """reread: gives the configuration for a reload. stopping: ends one that is under way. hear: how far one is."""
        self.config = self._started = config
        self.generation = generation
        self.standing: tuple[Generation, ...] = (generation,)  # until the last request of each is answered
        self._backends = backends
        self._metering = metering
        self._reread = reread
        self._stopping = stopping
        self._hear = hear
        self._reloading = threading.Lock()

    def enter(self) -> Generation:
        """Return the generation that serves now, with one request counted in."""
        while not (generation := self.generation).enter():
            pass  # a reload replaced it between the two: its successor stands already
        return generation

    def reload(self) -> list[str]:
        """Read everything again and serve it from the next request on; raises ReloadFailedError and changes nothing."""
        with self._reloading:
            log.info("reloading", extra=event("reload-begun"))
            try:
                return self._follow()
            except JetselError as error:
                log.error("reload refused, nothing changed: %s", error, extra=event("reload-refused", code=error.code))
                raise

    def _follow(self) -> list[str]:
        began_s = time.monotonic()
        before, following = self.generation, None
        try:
            config = self._reread()
            check_power(config.power)
            following = build(config, before)
            following.limits, following.workers = before.limits, before.workers  # of [server]: at the next start
            following.hear = self._hear
            following.load(self._backends, before, self._stopping)
        except JetselError as error:
            raise ReloadFailedError(f"the running configuration stays: {error}") from None
        finally:
            if following is not None and not following.ready:  # refused, stopped, or broken off by a defect
                following.close(before)
        if not following.ready:
            raise ShuttingDownError("the daemon is stopping and reloads no more: it reads everything when it is back")
        for section in for_next_start(self._started, config):
            told = event("for-next-start", section=section)
            log.warning("changes under [%s] take effect at the next start", section, extra=told)
        self._metering.serve(following.families, config.power)
        self.config = config
        set_level(config.log.level)
        self.standing = (following, before)
        self.generation = following
        changed = changes(before, following)
        told = event("reloaded", changed=changed, took_s=time.monotonic() - began_s)
        log.info("reloaded: %s", ", ".join(changed) or "nothing changed", extra=told)
        before.retire()
        self.standing = (following,)
        before.close(following)
        return changed
