"""Reloads, one after the other: asked for by messages or SIGHUP, told to the service manager, and answered."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable

from jetsel.daemon.notify import Notifier
from jetsel.daemon.port import Route
from jetsel.daemon.tally import Tally
from jetsel.errors import InternalError, JetselError, ShuttingDownError
from jetsel.events import event, run_about
from jetsel.wire import PROTOCOL_VERSION, Reload, Reloaded, Reply, failure

log = logging.getLogger("jetsel.daemon")

READY = "ready"

Asked = tuple[Route, Reload]


class ReloadRequests:
    """The thread that reloads: who asks while a reload is under way shares the next one. Any thread may call."""

    def __init__(
        self, reload: Callable[[], list[str]], reply: Callable[[Route, Reply], None], notifier: Notifier, tally: Tally
    ) -> None:
        """reload: does it, and returns what it changed."""
        self._reload = reload
        self._reply = reply
        self._notifier = notifier
        self._tally = tally
        self._waiting: queue.SimpleQueue[Asked | None] = queue.SimpleQueue()  # None: nobody waits for an answer
        self._lock = threading.Lock()
        self._sharing: list[Asked] = []  # who is to be answered, until it is done
        self._is_closed = False
        self._thread = threading.Thread(target=self._serve, name="reload", daemon=True)
        self._thread.start()

    def ask(self, asked: Asked | None = None) -> None:
        """Have a reload begin from now on, and the message answered, if one is given, when it has ended."""
        self._waiting.put(asked)

    def close(self) -> None:
        """Begin none any more; who waits for one that has not begun is told so."""
        self._is_closed = True
        self.ask()

    def give_up(self, patience_s: float) -> None:
        """Once closed: wait so long for the one under way, then tell who waits for it."""
        self._thread.join(patience_s)
        self._take_waiting()
        self._answer(_stopping())

    def _serve(self) -> None:
        while not self._is_closed:
            self._sharing += filter(None, [self._waiting.get()])
            self._take_waiting()
            ids = tuple(request.id for _, request in self._sharing)
            self._answer(_stopping() if self._is_closed else run_about(ids, self._reload_once))

    def _take_waiting(self) -> None:
        while not self._waiting.empty():
            self._sharing += filter(None, [self._waiting.get()])

    def _answer(self, ended: list[str] | JetselError) -> None:
        """Answer who shares the reload under way, unless that is done."""
        with self._lock:
            sharing, self._sharing = self._sharing, []
        for route, request in sharing:
            if isinstance(ended, list):
                self._reply(route, Reloaded(PROTOCOL_VERSION, request.id, ended))
            else:
                self._reply(route, failure(request.id, ended))

    def _reload_once(self) -> list[str] | JetselError:
        """Reload, and tell the log and the service manager how that ended; return what changed, or why nothing did."""
        began_s = time.monotonic()
        ended: list[str] | JetselError
        self._notifier.reloading("reloading")
        log.info("reloading", extra=event("reload-begun"))
        try:
            ended = self._reload()
        except JetselError as error:
            ended = error
        except Exception:  # the net of reloads: whatever one breaks, who asked is answered
            log.exception("a reload failed for a defect of jetsel's", extra=event("reload-failed"))
            ended = InternalError("jetsel failed on this reload: its log has the reason")
        took_s = time.monotonic() - began_s
        self._tally.reloaded(took_s, ended)
        status = READY
        if isinstance(ended, list):
            told = event("reloaded", changed=ended, took_s=took_s)
            log.info("reloaded: %s", ", ".join(ended) or "nothing changed", extra=told)
        else:
            log.error("reload refused: %s", ended, extra=event("reload-refused", code=ended.code))
            status += f"; the last reload was refused: {ended}"
        self._notifier.ready(status)  # before the reply: who reads it may go by what the manager shows
        return ended


def _stopping() -> ShuttingDownError:
    return ShuttingDownError("the daemon is stopping and reloads no more: it reads everything when it is back")
