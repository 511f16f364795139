"""Reloads, one after the other: asked for by messages or SIGHUP, told to the service manager, and answered."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable

from jetsel.daemon.message import Route
from jetsel.daemon.notify import Notifier
from jetsel.daemon.shortage import out_of_memory
from jetsel.daemon.tally import Tally
from jetsel.errors import InternalError, JetselError, ReloadFailedError, ShuttingDownError
from jetsel.events import about, event
from jetsel.wire import PROTOCOL_VERSION, Reload, Reloaded, Reply, failure

log = logging.getLogger("jetsel.daemon")

READY = "ready"

Asked = tuple[Route, Reload]


class ReloadRequests:
    """The thread that reloads: who asks while a reload is under way shares the next one. Any thread may call."""

    def __init__(
        self,
        reload: Callable[[], list[str]],
        reply: Callable[[Route, Reply], None],
        wake: Callable[[], None],
        notifier: Notifier,
        tally: Tally,
    ) -> None:
        """reload: does it, and returns what it changed. wake: has a worker look at the socket after a reply."""
        self._reload = reload
        self._reply = reply
        self._wake = wake
        self._notifier = notifier
        self._tally = tally
        self._waiting: queue.SimpleQueue[Asked | None] = queue.SimpleQueue()  # None: nobody waits for an answer
        self._lock = threading.Lock()
        self._sharing: list[Asked] = []  # the reload under way, until they are answered
        self._is_idle = threading.Event()
        self._is_closed = False
        threading.Thread(target=self._serve, name="reload", daemon=True).start()

    def ask(self, asked: Asked | None = None) -> None:
        """Have a reload begin from now on, and the message answered, if one is given, when it has ended."""
        self._waiting.put(asked)

    def close(self) -> None:
        """Begin none any more; who waits for one that has not begun, or asks from now on, is told so."""
        self._is_closed = True

    def give_up(self, patience_s: float) -> bool:
        """Once closed: wait so long for the one under way, then tell who waits for it; return whether it has ended."""
        is_idle = self._is_idle.wait(patience_s)
        self._answer(_stopping())
        return is_idle

    def _serve(self) -> None:
        while True:
            self._is_idle.set()
            asked = [self._waiting.get()]
            self._is_idle.clear()
            while not self._waiting.empty():
                asked.append(self._waiting.get())
            self._sharing = [each for each in asked if each is not None]
            try:
                with about(tuple(request.id for _, request in self._sharing)):
                    self._answer(_stopping() if self._is_closed else self._reload_once())
            except Exception:  # a defect, or no memory: the thread must live to do the next
                log.exception("a reload failed for a defect of jetsel's", extra=event("reload-failed"))

    def _reload_once(self) -> list[str] | JetselError:
        self._notifier.reloading("reloading")
        ended = self._outcome()
        status = READY if isinstance(ended, list) else f"{READY}; the last reload was refused: {ended}"
        self._notifier.ready(status)  # before the reply: who reads it may go by what the manager shows
        return ended

    def _answer(self, ended: list[str] | JetselError) -> None:
        """Answer who shares the reload under way, unless that is done."""
        with self._lock:
            sharing, self._sharing = self._sharing, []
        for route, request in sharing:
            try:
                if isinstance(ended, list):
                    self._reply(route, Reloaded(PROTOCOL_VERSION, request.id, ended))
                else:
                    self._reply(route, failure(request.id, ended))
            except Exception:  # noqa: PERF203  # as above: the others are to be answered
                told = event("reload-failed", request_id=request.id)
                log.exception("who asked for a reload could not be answered", extra=told)
        self._wake()  # sending may hide a message that has come, and this thread reads none

    def _outcome(self) -> list[str] | JetselError:
        """Reload, and log how that ended; return what changed, or why nothing did."""
        began_s = time.monotonic()
        ended: list[str] | JetselError = InternalError("jetsel failed on this reload: its log has the reason")
        log.info("reloading", extra=event("reload-begun"))
        try:
            ended = self._reload()
        except JetselError as error:
            ended = error
        except Exception as error:  # the net of reloads: whatever one breaks, who asked is answered
            if out_of_memory(error) is None:
                log.exception("a reload failed for a defect of jetsel's", extra=event("reload-failed"))
            else:
                ended = ReloadFailedError(
                    "memory ran out, and the running models stay: serve fewer, or raise its limit"
                )
        took_s = time.monotonic() - began_s
        self._tally.reloaded(took_s, ended)
        if isinstance(ended, list):
            told = event("reloaded", changed=ended, took_s=took_s)
            log.info("reloaded: %s", ", ".join(ended) or "nothing changed", extra=told)
        else:
            log.error("reload refused: %s", ended, extra=event("reload-refused", code=ended.code))
        return ended


def _stopping() -> ShuttingDownError:
    return ShuttingDownError("the daemon is stopping and reloads no more: it reads everything when it is back")
