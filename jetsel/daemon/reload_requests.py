"""Reloads, one after the other: asked for by messages or SIGHUP, told to the service manager, and answered."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from jetsel.daemon.message import Route
from jetsel.daemon.notify import Notifier
from jetsel.daemon.shortage import out_of_memory
from jetsel.errors import InternalError, JetselError, ReloadFailedError, ShuttingDownError
from jetsel.events import about, event
from jetsel.wire import PROTOCOL_VERSION, Reload, Reloaded, Reply, failure

log = logging.getLogger("jetsel.daemon")

READY = "ready"

Asked = tuple[Route, Reload]


class ReloadRequests:
    """Who asks while a reload is under way shares the next one. Any thread may call."""

    def __init__(
        self,
        reload: Callable[[], list[str]],
        reply: Callable[[Route, Reply], None],
        wake: Callable[[], None],
        notifier: Notifier,
    ) -> None:
        """reload: does it, and returns what it changed. wake: has a worker look at the socket after the replies."""
        self._reload = reload
        self._reply = reply
        self._wake = wake
        self._notifier = notifier
        self._change = threading.Condition()
        self._is_wanted = self._is_closed = False
        self._waiting: list[Asked] = []  # for the next reload
        self._sharing: list[Asked] = []  # the one under way
        self._thread = threading.Thread(target=self._serve, name="reload", daemon=True)
        self._thread.start()

    def ask(self, *asked: Asked) -> None:
        """Have a reload begin from now on, and the message answered, if one is given, when it has ended."""
        with self._change:
            if not self._is_closed:
                self._is_wanted = True
                self._waiting += asked
                self._change.notify()
                return
        self._refuse(asked)

    def close(self) -> None:
        """Begin none any more; who waits for one that has not begun is told so."""
        with self._change:
            self._is_closed = True
            waiting, self._waiting = self._waiting, []
            self._change.notify()
        self._refuse(waiting)

    def give_up(self, patience_s: float) -> bool:
        """Once closed: wait so long for the one under way, then tell who waits for it; return whether it has ended."""
        self._thread.join(patience_s)
        self._refuse(self._take_sharing())
        return not self._thread.is_alive()

    def _refuse(self, asked: Sequence[Asked]) -> None:
        error = ShuttingDownError("the daemon is stopping and reloads no more: it reads everything when it is back")
        for route, request in asked:
            self._reply(route, failure(request.id, error))

    def _take_sharing(self) -> list[Asked]:
        with self._change:
            sharing, self._sharing = self._sharing, []
            return sharing

    def _serve(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._is_wanted or self._is_closed)
                if self._is_closed:
                    return
                self._is_wanted = False
                self._sharing, self._waiting = self._waiting, []
                ids = tuple(request.id for _, request in self._sharing)
            try:
                with about(ids):
                    self._serve_one()
            except Exception:  # a defect, or no memory: the thread must live to do the next
                log.exception("a reload failed for a defect of jetsel's", extra=event("reload-failed", request_id=ids))

    def _serve_one(self) -> None:
        self._notifier.reloading("reloading")
        ended = self._outcome()
        status = READY if isinstance(ended, list) else f"{READY}; the last reload was refused: {ended}"
        if not self._is_closed:
            self._notifier.ready(status)  # before the replies: who reads one may go by what the manager shows
        for route, request in self._take_sharing():
            self._answer(route, request.id, ended)
        self._wake()  # sending may hide a message that has come, and this thread reads none

    def _answer(self, route: Route, request_id: str, ended: list[str] | JetselError) -> None:
        try:
            if isinstance(ended, list):
                self._reply(route, Reloaded(PROTOCOL_VERSION, request_id, ended))
            else:
                self._reply(route, failure(request_id, ended))
        except Exception:  # as above: the others are to be answered
            told = event("reload-failed", request_id=request_id)
            log.exception("who asked for a reload could not be answered", extra=told)

    def _outcome(self) -> list[str] | JetselError:
        """Reload, and log how that ended; return what changed, or why nothing did."""
        began_s = time.monotonic()
        log.info("reloading", extra=event("reload-begun"))
        try:
            changed = self._reload()
        except JetselError as error:
            refused = error
        except Exception as error:  # the net of reloads: whatever one breaks, who asked is answered
            if out_of_memory(error) is None:
                log.exception("a reload failed for a defect of jetsel's", extra=event("reload-failed"))
                return InternalError("jetsel failed on this reload: its log has the reason")
            refused = ReloadFailedError(
                "memory ran out while the new models were loaded, and the running ones stay: raise the daemon's "
                "memory limit, or serve fewer models"
            )
        else:
            told = event("reloaded", changed=changed, took_s=time.monotonic() - began_s)
            log.info("reloaded: %s", ", ".join(changed) or "nothing changed", extra=told)
            return changed
        log.error("reload refused: %s", refused, extra=event("reload-refused", code=refused.code))
        return refused
