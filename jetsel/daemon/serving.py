"""Which generation answers now, and how a reload has the next one take over without losing a request."""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
import threading
from collections.abc import Callable, Iterator

from jetsel.config import Config
from jetsel.daemon.aside import aside
from jetsel.daemon.changes import changes, for_next_start
from jetsel.daemon.generation import Generation, Hear, build
from jetsel.daemon.metering.metering import Metering
from jetsel.engines import Backends
from jetsel.errors import ConfigError, JetselError, ReloadFailedError, ShuttingDownError
from jetsel.events import event
from jetsel.logs import set_level
from jetsel.power.finding import check as check_power

log = logging.getLogger("jetsel.daemon")

TURN_S = 0.0005  # a request waits no longer than this for the interpreter while a reload works
LINGER_S = 10.0  # a reload waits so long for the requests that began before it


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
        self._freeing = threading.Lock()  # whoever changes `standing` holds it
        self.linger_s = LINGER_S

    def enter(self) -> Generation:
        """Return the generation that serves now, with one request counted in."""
        while not (generation := self.generation).enter():
            pass  # a reload replaced it between the two: its successor stands already
        return generation

    def reload(self) -> list[str]:
        """Read everything again and serve it from the next request on; return what is different, for people.

        Requests that are under way are waited for, for so long as `linger_s`. Raises ReloadFailedError, and
        ShuttingDownError once the daemon stops: then nothing has changed.
        """
        with self._reloading, turning_fast():
            before, following = self.generation, self._following()
            return self._swap(before, following) + self._see_off(before)

    def _following(self) -> Generation:
        """Return the generation that is to serve next, loaded."""
        before, following = self.generation, None
        try:
            config = self._reread()
            check_power(config.power)
            following = aside(lambda: build(config, before), starts_threads=False)
            following.limits, following.workers = before.limits, before.workers  # of [server]: at the next start
            following.hear = self._hear
            self._make_backends(following)
            load = functools.partial(following.load, self._backends, before, self._stopping)
            aside(load, starts_threads=config.models.threads > 1)  # of these the caller of a session is one
        except JetselError as error:
            raise ReloadFailedError(f"the running configuration stays: {error}") from None
        finally:
            if following is not None and not following.ready:  # refused, stopped, or broken off by a defect
                following.close(*self.standing)
        if not following.ready:
            raise ShuttingDownError("the daemon is stopping and reloads no more: it reads everything when it is back")
        return following

    def _make_backends(self, following: Generation) -> None:
        """Make those that it needs: they may start processes, which `aside` would keep behind for good."""
        for family in following.families.values():
            for backend in family.backends.values():
                with contextlib.suppress(ConfigError):  # there is none of this name: its models are told when they load
                    self._backends.get(backend)

    def _swap(self, before: Generation, following: Generation) -> list[str]:
        """Have the following one serve; return what is different."""
        config = following.config
        try:
            changed = changes(before, following)
            self._metering.serve(following.families, config.power)
            with self._freeing:
                self.standing = (following, *self.standing)
                self.generation = following
        finally:
            if self.generation is not following:  # a defect: what was loaded goes again
                following.close(*self.standing)
        for section in for_next_start(self._started, config):
            told = event("for-next-start", section=section)
            log.warning("changes under [%s] take effect at the next start", section, extra=told)
        self.config = config
        set_level(config.log.level)
        return changed

    def _see_off(self, before: Generation) -> list[str]:
        """Free what was served before once its requests are answered; return how many are not, for people."""
        left = before.retire(self.linger_s)
        for old in self.standing[1:]:  # those of earlier reloads, too, where no thread could wait for them
            if old is not before and old.retire(0.0) == 0:
                self._free(old)
        if not left:
            self._free(before)
            return []
        with contextlib.suppress(RuntimeError):  # no thread can be had: the next reload looks again
            threading.Thread(target=self._free_later, args=(before,), name="retiring", daemon=True).start()
        return [f"{left} requests that began before are under way still, and are answered as they began"]

    def _free_later(self, old: Generation) -> None:
        old.retire()
        self._free(old)

    def _free(self, old: Generation) -> None:
        with self._freeing:
            if old in self.standing:
                self.standing = tuple(generation for generation in self.standing if generation is not old)
                old.close(*self.standing)


@contextlib.contextmanager
def turning_fast() -> Iterator[None]:
    """Have threads take turns at the interpreter faster while one of them works beside the requests.

    At 5 ms a turn, CPython's own, a request waits as long whenever it comes back from what released the interpreter.
    All the time, though, faster turns cost requests more than they gain from them: see docs/reliability.md.
    """
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(TURN_S)
    try:
        yield
    finally:
        sys.setswitchinterval(usual_s)
