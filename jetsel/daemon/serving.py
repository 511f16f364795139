"""Which generation answers now, and how a reload has the next one take over without losing a request."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from jetsel.config import Config
from jetsel.daemon.changes import changes, for_next_start
from jetsel.daemon.generation import Generation, build
from jetsel.daemon.metering.metering import Metering
from jetsel.engines import Backends
from jetsel.errors import JetselError, ReloadFailedError
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
    ) -> None:
        self.config = self._started = config
        self.generation = generation
        self.standing: tuple[Generation, ...] = (generation,)  # until the last request of each is answered
        self._backends = backends
        self._metering = metering
        self._reread = reread
        self._reloading = threading.Lock()

    def enter(self) -> Generation:
        """Return the generation that serves now, with one request counted in."""
        while not (generation := self.generation).enter():
            pass  # a reload replaced it between the two: its successor stands already
        return generation

    def reload(self) -> list[str]:
        """Read everything again and serve it from the next request on; raises ReloadFailedError and changes nothing."""
        with self._reloading:
            before = self.generation
            try:
                config = self._reread()
                check_power(config.power)
                following = build(config, before)
                following.limits, following.workers = before.limits, before.workers  # of [server]: at the next start
            except JetselError as error:
                raise ReloadFailedError(f"the running configuration stays: {error}") from None
            try:
                following.load(self._backends, before)
            except JetselError as error:
                following.close(before)
                raise ReloadFailedError(f"the running configuration stays: {error}") from None
            for section in for_next_start(self._started, config):
                log.warning("changes under [%s] take effect at the next start", section)
            self._metering.serve(following.families, config.power)
            self.config = config
            self.standing = (following, before)
            self.generation = following
            changed = changes(before, following)
            log.info("reloaded: %s", ", ".join(changed) or "nothing changed")
            before.retire()
            self.standing = (following,)
            before.close(following)
            return changed
