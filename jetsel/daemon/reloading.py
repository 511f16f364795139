"""Reloads, one after the other: each is asked for by messages or SIGHUP, told to the service manager, and answered."""

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


class Reloader:
    """Whoever asks while a reload is under way shares the next one. Any thread may call."""

    def __init__(
        self,
        reload: Callable[[], list[str]],
        reply: Callable[[Route, Reply], None],
        wake: Callable[[], None],
        notifier: Notifier,
    ) -> None:
        """reload: does it, and returns what it changed. wake: has the crew look at the socket after a reply."""
        self._do = reload
        self._send = reply
        self._wake = wake
        self._notifier = notifier
        self._lock = threading.Lock()
        self._is_wanted = False
        self._asked: list[Asked] = []  # for the next reload
        self._sharing: list[Asked] = []  # the one under way
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def ask(self, *asked: Asked) -> None:
        """Have a reload done that begins from now on, and the message answered, if one is given, when it has ended."""
        with self._lock:
            if not self._is_closed:
                error = self._start()
                if error is None:
                    self._is_wanted = True
                    self._asked += asked
                    return
            else:
                error = _stopping()
        self._refuse(asked, error)

    def _start(self) -> JetselError | None:
        """Have the thread run, under the lock; return why it cannot."""
        if self._thread is not None:
            return None
        thread = threading.Thread(target=self._run, name="reload", daemon=True)
        try:
            thread.start()  # it waits for the lock
        except RuntimeError as error:  # threading's word for EAGAIN of pthread_create(3)
            refused = ReloadFailedError(
                f"the running configuration stays: {error}: raise the unit's TasksMax=, or ulimit -u"
            )
            log.error("reload refused: %s", refused, extra=event("reload-refused", code=refused.code))
            return refused
        self._thread = thread
        return None

    def close(self) -> None:
        """Begin none any more; who waits for one that has not begun is told so."""
        with self._lock:
            self._is_closed, self._is_wanted = True, False
            asked, self._asked = self._asked, []
        self._refuse(asked, _stopping())

    def give_up(self, patience_s: float) -> bool:
        """Wait so long for the one under way, then tell who waits for it; return whether it has ended."""
        thread = self._thread
        if thread is not None:
            thread.join(patience_s)
        with self._lock:
            sharing, self._sharing = self._sharing, []
        self._refuse(sharing, _stopping())
        return thread is None or not thread.is_alive()

    def _refuse(self, asked: Sequence[Asked], error: JetselError) -> None:
        for route, request in asked:
            self._send(route, failure(request.id, error))

    def _run(self) -> None:
        try:
            while self._serve_next():
                pass
        finally:  # where even the nets below failed, for want of memory: whoever asks next has another thread begun
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread = None

    def _serve_next(self) -> bool:
        """Do the reload that is asked for, and answer; return whether there was one."""
        with self._lock:
            if not self._is_wanted:
                self._thread = None
                return False
            self._is_wanted = False
            self._sharing, self._asked = self._asked, []
            ids = tuple(request.id for _, request in self._sharing)
        self._notifier.reloading("reloading")
        with about(ids):
            ended = self._reload()
        status = READY if isinstance(ended, list) else f"{READY}; the last reload was refused: {ended}"
        if not self._is_closed:  # without the lock: a service manager that does not read may take its time
            self._notifier.ready(status)  # before the replies: who reads one may go by what the manager shows
        with self._lock:
            sharing, self._sharing = self._sharing, []
        for route, request in sharing:
            self._answer(route, request, ended)
        self._wake()  # this thread is none of the crew's, and does not read what the sending may have hidden
        return True

    def _answer(self, route: Route, request: Reload, ended: list[str] | JetselError) -> None:
        try:
            self._send(route, _reply(request.id, ended))
        except Exception:  # a defect of ours, or no memory: the others are to be answered
            told = event("reload-failed", request_id=request.id)
            log.exception("who asked for a reload could not be answered", extra=told)

    def _reload(self) -> list[str] | JetselError:
        """Do it, and tell the log how it ended: here, and nowhere else."""
        began_s = time.monotonic()
        log.info("reloading", extra=event("reload-begun"))
        try:
            changed = self._do()
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


def _stopping() -> ShuttingDownError:
    return ShuttingDownError("the daemon is stopping and reloads no more: it reads everything when it is back")


def _reply(request_id: str, ended: list[str] | JetselError) -> Reply:
    if isinstance(ended, JetselError):
        return failure(request_id, ended)
    return Reloaded(PROTOCOL_VERSION, request_id, ended)
