"""Keeps one engine host running: starts it, notices its end, kills it if it hangs, and restarts it.

One thread does this and is the parent of every host, because the kernel ends a host with the thread that started it.
Callers send requests to the host from their own threads, one at a time.
"""

from __future__ import annotations

import contextlib
import logging
import select
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from jetsel.base.errors import ConfigError, EngineDiedError, JetselError
from jetsel.base.events import event
from jetsel.base.process import EventFd
from jetsel.engines.base import EngineFailedError, HostState
from jetsel.engines.hosting.process import LEAVE_S, HostProcess, HostStart, LinkBrokenError, LinkTimeoutError, StopCheck
from jetsel.engines.hosting.residents import RULES, AnotherHostError, HostHistory, Resident, Residents, Rules
from jetsel.wire.status import HostStatus

log = logging.getLogger("jetsel.engines")

CLOSE_S = 4 * LEAVE_S  # limits of a current ping, of the request to exit, of the exit, and of a kill


class Supervisor:
    """Supervises one host at a time. Any thread may call.

    prepare: returns how to start a host, or raises ConfigError. changed: called, from any thread, when the host or a
    model becomes available or unavailable.
    """

    def __init__(self, prepare: Callable[[], HostStart], changed: Callable[[], None], rules: Rules = RULES) -> None:
        self._prepare = prepare
        self._changed = changed
        self._rules = rules
        self.waiting_threads: set[int] = set()  # threads in `ask`: each has a limit, and returns when the host ends
        self._link_lock = threading.Lock()  # held during an exchange with the host, and while a host is ended
        self._condition = threading.Condition()  # guards the fields below
        self._state: HostState = "idle"
        self.process: HostProcess | None = None  # the running host
        self.down_reason: str | None = "the engine host is not started yet"  # why none runs
        self._closing = False
        self._history = HostHistory(rules)
        self.residents = Residents(self.ask, self._stop_reason, rules)
        self.restart_s = 1.0  # time of the last start with all loads
        self._event_fd = EventFd()
        self._thread = threading.Thread(target=self._run, name="engine-host", daemon=True)
        self._thread.start()

    @property
    def is_restarting(self) -> bool:
        """Whether a host that has ended is being restarted."""
        return self._state == "restarting"

    @property
    def _is_starting(self) -> bool:
        """Whether the supervisor's thread has to start a host, or is doing so."""
        return self._state in ("starting", "restarting")

    def report(self) -> HostStatus:
        """Return the state of the host, and how the previous one ended; `Backends.hosts` fills in the backend."""
        with self._condition:
            how, when_s = self._history.last_end or (None, None)
            ago_s = None if when_s is None else round(time.monotonic() - when_s, 3)
            pid = None if self.process is None else self.process.pid
            return HostStatus("", self._state, self.down_reason, pid, self._history.restarts, how, ago_s)

    def start(self) -> HostProcess:
        """Return the running host. If none runs, start one, or wait for the current restart.

        Raises EngineFailedError or ConfigError with the reason if that start fails, or failed just before.
        """
        history = self._history
        with self._condition:
            earlier = history.failure
            if earlier is not None and time.monotonic() - earlier[1] < self._rules.same_failure_s:
                raise type(earlier[0])(str(earlier[0]))
            if self._state in ("idle", "failed"):
                self._state = "starting"
                self._event_fd.set()
            self._condition.wait_for(lambda: self._closing or not self._is_starting or history.failure is not earlier)
            if self.process is None:
                failure = history.failure[0] if history.failure else EngineFailedError(str(self.down_reason))
                raise type(failure)(str(failure))
            return self.process

    def ask(
        self,
        process: HostProcess,
        kind: str,
        request: Mapping[str, Any],
        limit_s: float,
        activity: str,
        stop_reason: StopCheck | None = None,
    ) -> dict[str, Any]:
        """Send this host one request, see HostProcess.exchange, and return its reply, also a failure.

        If the host dies or exceeds limit_s, end it and request a restart. activity: for the log, such as "running m".
        Raises EngineDiedError if the host died, hung, or has been replaced.
        """
        thread = threading.get_ident()
        self.waiting_threads.add(thread)
        try:
            with self._link_lock:
                if self.process is not process:
                    raise AnotherHostError("the engine host died: send again")
                try:
                    reply = process.exchange(kind, request, limit_s, stop_reason=stop_reason)
                    if reply.get("code") == "poisoned":
                        raise LinkBrokenError(f"its device failed: {reply.get('message')}")
                except LinkBrokenError as error:
                    self._end_failed_host(process, error, activity)
                    raise EngineDiedError(f"the engine host died while {activity}: send again") from None
        finally:
            self.waiting_threads.discard(thread)
        return reply

    def load(self, resident: Resident) -> None:
        """Load a model now and into every later host; raises EngineFailedError or ConfigError with the reason."""
        self.residents.add(resident)  # first, so that a host that starts now loads it; a second load does no harm
        try:
            try:
                self.residents.load(self.start(), resident)
            except EngineDiedError:  # another model may have caused it
                self.residents.load(self.start(), resident)
        except EngineDiedError:
            self.residents.forget(resident)
            raise EngineFailedError(
                f"{resident.name}: the engine host died twice while loading this model: look at the log for the "
                "cause, then run: jetsel reload"
            ) from None
        except JetselError:
            self.residents.forget(resident)
            raise

    def close(self) -> None:
        """Stop the host and the supervisor's thread; a host that is still starting is killed."""
        with self._condition:
            if self._closing:
                return
            self._closing = True
            self._condition.notify_all()
        self._event_fd.set()
        self._thread.join(CLOSE_S)
        if self._thread.is_alive():  # the kernel ends the host with this process
            log.warning("the engine host does not exit; the daemon stops without it", extra=event("host-left-behind"))
        else:
            self._event_fd.close()

    def _run(self) -> None:
        """Start, watch and restart hosts until `close`."""
        while not self._closing:
            if self._is_starting:
                with self._link_lock:  # held by the thread that ends the previous host
                    resume_s = time.monotonic() + self._history.pause_s
                while not self._closing and (left_s := resume_s - time.monotonic()) > 0:
                    self._sleep(left_s)
                if not self._closing:
                    self._start_host()
            else:
                self._watch()
        with self._link_lock, self._condition:
            process, self.process = self.process, None
        if process is not None:
            process.leave()

    def _watch(self) -> None:
        """Sleep until an event, the host's end or the next ping; ping an idle host, and end one that has failed."""
        process = self.process
        host_fd = -1 if process is None else process.fd
        if process is None or host_fd < 0:
            self._sleep(None)  # the thread that ends the host sets the event
            return
        idle_s = time.monotonic() - process.last_reply_s
        has_ended = self._sleep(max(self._rules.ping_every_s - idle_s, 0.01), host_fd)
        if self._closing or self.process is not process:
            return
        if has_ended:
            with self._link_lock:
                self._end_failed_host(process, LinkBrokenError("it closed the connection"), "idle")
        elif time.monotonic() - process.last_reply_s >= self._rules.ping_every_s:
            with contextlib.suppress(EngineDiedError):
                self.ask(process, "ping", {}, self._rules.ping_limit_s, "idle")

    def _sleep(self, limit_s: float | None, host_fd: int | None = None) -> bool:
        """Sleep until `_event_fd` is set, for limit_s (None: no limit), or until the host with the socket host_fd ends.

        Return whether the host has ended.
        """
        poll = select.poll()
        poll.register(self._event_fd.fd, select.POLLIN)
        if host_fd is not None:
            poll.register(host_fd, 0)  # no event mask: only the end of the connection wakes
        ready = {fd for fd, _ in poll.poll(None if limit_s is None else limit_s * 1e3)}
        if self._event_fd.fd in ready:
            self._event_fd.clear()
        return host_fd in ready

    def _end_failed_host(self, process: HostProcess, error: LinkBrokenError, activity: str) -> None:
        """End a host that died or hangs, log it, and request a restart. The caller holds `_link_lock`."""
        with self._condition:  # first, because ending it may take seconds, in which no caller should queue
            if self.process is not process:
                return
            self.process, self._state = None, "restarting"
            self.down_reason = f"the engine host failed while {activity}; the daemon stops it"
        is_hung = isinstance(error, LinkTimeoutError)
        how = process.kill(0.0 if is_hung else 0.2)
        if self._closing:
            return
        how = f"{error}, and was killed" if is_hung else f"{error} ({how})"
        names = [resident.name for resident in self.residents.all()]
        fields = event("host-hung" if is_hung else "host-died", pid=process.pid, model=names)
        log.error("engine host %d ended while %s: %s", process.pid, activity, how, extra=fields)
        self._add_end(f"the engine host ended while {activity}: {how}")

    def _add_end(self, reason: str) -> None:
        """Note the end of a host, and wake the supervisor's thread, which restarts it after a pause."""
        with self._condition:
            self._history.add_end(reason, time.monotonic())
            self.down_reason = f"{reason}; it is being started again"
            self._condition.notify_all()
        self._event_fd.set()
        self._changed()

    def _stop_reason(self) -> str | None:
        return "it is no longer needed" if self._closing else None

    def _start_host(self) -> None:
        """Start a host and load all models into it. If it fails, the next `start` tries again; a restart repeats."""
        began_s, is_restart = time.monotonic(), self.is_restarting
        try:
            process = HostProcess(self._prepare(), self._stop_reason)
        except (EngineFailedError, ConfigError) as error:
            with self._condition:
                self._history.failure = error, time.monotonic()
                if not is_restart:
                    self._state, self.down_reason = "failed", str(error)
                self._condition.notify_all()
            if is_restart and not self._closing:
                log.error("the engine host does not start again: %s", error, extra=event("host-not-started"))
                self._add_end(str(error))
            return
        with self._condition:
            self.process, self._state, self.down_reason = process, "running", None
            self._history.failure = None
            self._history.restarts += is_restart
            residents = self.residents.all()
            self._condition.notify_all()
        for resident in residents:
            if self.residents.load_again(process, resident):
                self._changed()
            if self._closing or self.process is not process:
                return
        self.restart_s = time.monotonic() - began_s
        log.log(
            logging.WARNING if is_restart else logging.INFO,
            "engine host %d runs %s %s under Python %s; models loaded: %d, in %.2f s",
            process.pid,
            process.about["backend"],
            process.about["version"],
            process.about["python"],
            len(residents),
            self.restart_s,
            extra=event("host-started", pid=process.pid, model=[resident.name for resident in residents]),
        )
        self._changed()
