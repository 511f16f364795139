"""A reload: the next snapshot is read and loaded beside the requests, then takes the place of the one that serves."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from jetsel.config import Config
from jetsel.daemon.changes import changes, for_next_start
from jetsel.daemon.current import Current
from jetsel.daemon.loading import Tell, load
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.snapshot import Snapshot, read_snapshot
from jetsel.engines import Backends
from jetsel.errors import ConfigError, JetselError, ReloadFailedError, ShuttingDownError
from jetsel.events import event
from jetsel.logs import set_level
from jetsel.power.finding import check as check_power

log = logging.getLogger("jetsel.daemon")

NICENESS = 10  # of the thread that loads: it gets a tenth of a core that requests want too (sched(7))
SWITCH_S = 0.0005  # a request waits no longer than this for the interpreter while a reload works; CPython's own is 5 ms


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
        with switching_fast():
            following = self._following(before)
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
            self._load(following, before)
            is_loaded = True
        except ShuttingDownError:
            raise
        except JetselError as error:
            raise ReloadFailedError(f"the running configuration stays: {error}") from None
        finally:
            if following is not None and not is_loaded:
                following.close(*self._current.standing)
        return following

    def _load(self, following: Snapshot, before: Snapshot) -> None:
        """Load behind the requests, where nothing that serves is left there: neither processes nor an engine's threads.

        A thread hands its nice value on to those that it starts, and few may lower it again.
        """
        for family in following.families.values():
            for backend in family.backends.values():
                with contextlib.suppress(ConfigError):  # there is no such backend: its models say so when they load
                    self._backends.get(backend)  # its process, if it has one, is started from this thread
        work = functools.partial(load, following, self._backends, self._tell, self._stopping, before)
        if following.config.models.threads > 1:
            work()
            return
        with ThreadPoolExecutor(1, "loading", initializer=step_back) as behind:
            context = contextvars.copy_context()  # of whom the log tells
            behind.submit(lambda: context.run(work)).result()


def step_back() -> None:
    """Have the calling thread take what the others leave of the processor's cores, until it ends."""
    me = threading.get_native_id()  # Linux keeps a nice value for each thread (setpriority(2), BUGS)
    with contextlib.suppress(PermissionError):  # a sandbox that refuses the call
        os.setpriority(os.PRIO_PROCESS, me, min(os.getpriority(os.PRIO_PROCESS, me) + NICENESS, 19))


@contextlib.contextmanager
def switching_fast() -> Iterator[None]:
    """Have threads take turns at the interpreter faster; all the time, that costs more than it gains."""
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(usual_s)
