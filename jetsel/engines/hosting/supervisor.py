"""Keeps one engine host running: starts it, listens for its end, kills it when it hangs, and starts it again.

A thread of its own does that, and is the parent of every host: the kernel ends a host with the thread that started it.
Whoever wants something of the host asks for it in a thread of their own, one at a time.
"""

from __future__ import annotations

import logging
import select
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from jetsel.bell import Bell
from jetsel.engines.base import EngineFailedError
from jetsel.engines.hosting.link import LinkBrokenError, LinkTimeoutError, Progress
from jetsel.engines.hosting.process import LEAVE_S, HostProcess, Start
from jetsel.engines.hosting.residents import Resident, Residents
from jetsel.engines.hosting.rules import RULES, Deaths, Rules
from jetsel.engines.report import History, HostReport, HostState
from jetsel.errors import ConfigError, EngineDiedError, JetselError
from jetsel.events import event

log = logging.getLogger("jetsel.engines")

CLOSE_S = 4 * LEAVE_S  # a ping that is under way, the question to leave, its end, and the end of one that was killed


class AnotherHostError(EngineDiedError):
    """The host that was meant is gone: nothing was asked of the one that has followed it."""


class Supervisor:
    """One host at a time. Every method may be called from any thread."""

    def __init__(self, prepare: Callable[[], Start], changed: Callable[[], None], rules: Rules = RULES) -> None:
        self._prepare = prepare
        self._changed = changed
        self._rules = rules
        self.asking: set[int] = set()  # the threads in `ask`: each has a limit, and ends with the host
        self._talking = threading.Lock()  # held by whoever uses the link, and by whoever ends a host
        self._state = threading.Condition()
        self._bell = Bell()
        self._process: HostProcess | None = None
        self._starting: HostProcess | None = None  # until it has loaded every model
        self._residents = Residents()
        self._deaths = Deaths(rules)
        self._wanted = False
        self._closing = False
        self._is_given_up = False
        self._history = History()
        self._failure: Exception | None = None  # why the first start failed
        self._failed_s = 0.0
        self._last_word_s = 0.0
        self.down: str | None = "the engine host is not started yet"
        self.is_returning = False
        self.returns_within_s = 1.0  # what a start took the last time, with all loads
        self._thread = threading.Thread(target=self._run, name="engine-host", daemon=True)
        self._thread.start()

    @property
    def process(self) -> HostProcess | None:
        """The host that runs, or None."""
        return self._process

    def report(self) -> HostReport:
        """Return how the host fares, and how those before it did."""
        with self._state:
            process, reason = self._process, self.down
            state: HostState = "idle"
            if process is not None:
                state, reason = "running", None
            elif self.is_returning:
                state = "restarting"
            elif self._is_given_up:
                state = "given-up"
            elif self._failure is not None:
                state = "failed"
            elif self._wanted:
                state = "starting"
            return self._history.report(state, reason, None if process is None else process.pid)

    def start(self) -> HostProcess:
        """Return the running host, started where none runs; raises EngineFailedError or ConfigError with the reason."""
        with self._state:
            if self._failure is not None and time.monotonic() - self._failed_s < self._rules.same_failure_s:
                raise type(self._failure)(str(self._failure))
            if self._process is None and not self.is_returning:
                self._failure, self._wanted, self._is_given_up = None, True, False
                self._deaths.forgive()
                self._bell.ring()
            self._state.wait_for(
                lambda: self._process is not None or self._closing or not (self._wanted or self.is_returning)
            )
            if self._process is None:
                raise type(self._failure)(str(self._failure)) if self._failure else EngineFailedError(str(self.down))
            return self._process

    def ask(
        self,
        process: HostProcess,
        kind: str,
        request: Mapping[str, Any],
        limit_s: float,
        what: str,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Ask this host one thing and return its reply, whether it says ok or not.

        what: for the log, as in "running m". Raises EngineDiedError where the host died of it, hung, or is another.
        """
        thread = threading.get_ident()
        self.asking.add(thread)
        try:
            with self._talking:
                if self._process is not process:
                    raise AnotherHostError("the engine host died: send again")
                try:
                    reply = process.exchange(kind, request, limit_s, progress)
                    if reply.get("code") == "poisoned":
                        raise LinkBrokenError(f"its device failed: {reply.get('message')}")
                except LinkBrokenError as error:
                    self._bury(process, error, what)
                    raise EngineDiedError(f"the engine host died while {what}: send again") from None
                finally:
                    self._last_word_s = time.monotonic()
        finally:
            self.asking.discard(thread)
        return reply

    def load(self, resident: Resident, progress: Progress | None = None) -> None:
        """Load a model now and in every later host; raises EngineFailedError with the host's reason."""
        self._residents.add(resident)  # before: a host that starts meanwhile loads it too, which does no harm
        try:
            try:
                self._move_in(self.start(), resident, progress)
            except EngineDiedError:  # perhaps of something else
                self._move_in(self.start(), resident, progress)
        except EngineDiedError:
            self.forget(resident)
            raise EngineFailedError(
                f"{resident.name}: the engine host died twice while it was to load this model: look at the log for the "
                "cause, then run: jetsel reload"
            ) from None
        except JetselError:
            self.forget(resident)
            raise

    def forget(self, resident: Resident) -> None:
        """Load this model no more."""
        self._residents.forget(resident)

    def close(self) -> None:
        """Have the host leave, and stop; one that is only starting is killed."""
        with self._state:
            if self._closing:
                return
            self._closing = True
            if self._starting is not None:
                self._starting.hang_up()
            self._state.notify_all()
        self._bell.ring()
        self._thread.join(CLOSE_S)
        if self._thread.is_alive():  # the kernel ends the host with this process
            log.warning("the engine host does not end: it is left behind", extra=event("host-left-behind"))
        else:
            self._bell.close()

    # The thread.

    def _run(self) -> None:
        while not self._closing:
            if self._process is None and self._wanted:
                self._rest(self._deaths.pause_s)
                if not self._closing:
                    self._bring_up()
            else:
                self._watch()
        with self._talking, self._state:
            process, self._process = self._process, None
        if process is not None:
            process.leave()

    def _watch(self) -> None:
        """Sleep until the bell rings or the host ends; ask an idle host now and then whether it lives."""
        process = self._process
        if process is None:
            self._sleep(None)
            return
        link_fd = process.link.fd
        if link_fd < 0:  # who is ending it holds the lock until that is done
            with self._talking:
                return
        idle_s = time.monotonic() - self._last_word_s
        has_ended = self._sleep(max(self._rules.ping_every_s - idle_s, 0.01), link_fd)
        if self._closing or self._process is not process:
            return
        if has_ended:
            with self._talking:
                self._bury(process, LinkBrokenError("it closed its end"), "idle")
        elif time.monotonic() - self._last_word_s >= self._rules.ping_every_s:
            self._ping(process)

    def _rest(self, pause_s: float) -> None:
        """Let the pause go by, whatever rings meanwhile but the end."""
        over_s = time.monotonic() + pause_s
        while not self._closing and (left_s := over_s - time.monotonic()) > 0:
            self._sleep(left_s)

    def _sleep(self, limit_s: float | None, link_fd: int | None = None) -> bool:
        """Sleep until the bell rings, the limit, or the end of the host at the link; return whether it was the last."""
        poll = select.poll()
        poll.register(self._bell.fd, select.POLLIN)
        if link_fd is not None:
            poll.register(link_fd, 0)  # its end alone
        roused = {fd for fd, _ in poll.poll(None if limit_s is None else limit_s * 1e3)}
        if self._bell.fd in roused:
            self._bell.heard()
        return link_fd in roused

    def _ping(self, process: HostProcess) -> None:
        if not self._talking.acquire(blocking=False):
            self._last_word_s = time.monotonic()  # somebody talks to it: that has a limit of its own
            return
        try:
            if self._process is process:
                process.exchange("ping", {}, self._rules.ping_limit_s)
        except LinkBrokenError as error:
            self._bury(process, error, "idle")
        finally:
            self._last_word_s = time.monotonic()
            self._talking.release()

    def _bury(self, process: HostProcess, error: LinkBrokenError, what: str) -> None:
        """End a host that died or hangs, and have another started. The caller holds `_talking`."""
        if self._process is not process:
            return
        if self._closing:
            process.kill()
            with self._state:
                self._process = None
            return
        with self._state:  # at once: ending it may take seconds, in which nobody should queue for it
            self._process, self._wanted, self.is_returning = None, False, True
            self.down = f"the engine host failed while {what}; it is being ended"
        lost = self._residents.names()
        if isinstance(error, LinkTimeoutError):
            process.kill()
            how = f"{error}, and was killed"
            told = event("host-hung", pid=process.pid, model=lost)
        else:
            how = f"{error} ({process.kill(patience_s=0.2)})"
            told = event("host-died", pid=process.pid, model=lost)
        log.error("engine host %d ended while %s: %s", process.pid, what, how, extra=told)
        self._mourn(f"the engine host ended while {what}: {how}")

    def _mourn(self, reason: str) -> None:
        """Count a death, and decide whether another host is started."""
        given_up = self._deaths.count(time.monotonic())
        with self._state:
            self._process = None
            self._wanted = not given_up
            self.is_returning = not given_up
            self._is_given_up = given_up
            self._history.ended(reason)
            self.down = f"{reason}; it is being started again"
            gone: list[Resident] = []
            if given_up:
                deaths = len(self._deaths)
                gone = self._residents.forget_all()
                told = event("host-given-up", count=deaths, model=[resident.name for resident in gone])
                log.critical("the engine host is given up: it ended %d times", deaths, extra=told)
                self.down = (
                    f"{reason}; it ended {deaths} times in {self._rules.window_s:g} s and is not started "
                    "again: look at the log for the cause, then run: jetsel reload"
                )
            self._state.notify_all()
        for resident in gone:
            resident.refused(self.down)
        self._bell.ring()
        self._changed()

    def _bring_up(self) -> None:
        try:
            self._start_one()
        finally:
            with self._state:
                self._starting = None

    def _begun(self, process: HostProcess) -> None:
        """Let `close` hang up on a host that is starting."""
        with self._state:
            self._starting = process
            if self._closing:
                process.hang_up()

    def _start_one(self) -> None:
        began = time.monotonic()
        again = self.is_returning
        try:
            process = HostProcess(self._prepare(), self._begun)
        except (EngineFailedError, ConfigError) as error:
            if self._closing:
                return
            if again:
                log.error("the engine host does not start again: %s", error, extra=event("host-not-started"))
                self._mourn(str(error))
                return
            with self._state:
                self._failure, self._wanted, self.down = error, False, str(error)
                self._failed_s = time.monotonic()
                self._state.notify_all()
            return
        with self._state:
            self._process, self.down, self.is_returning = process, None, False
            self._history.restarts += again
            residents = self._residents.all()
            self._last_word_s = time.monotonic()
            self._state.notify_all()
        for resident in residents:
            self._house(resident)
            if self._closing or self._process is not process:
                return
        self.returns_within_s = time.monotonic() - began
        about = process.about
        tell = log.warning if again else log.info
        tell(
            "engine host %d runs %s %s under Python %s; models loaded: %d, in %.2f s",
            process.pid,
            about.get("backend"),
            about.get("version"),
            about.get("python"),
            len(residents),
            self.returns_within_s,
            extra=event("host-started", pid=process.pid, model=[resident.name for resident in residents]),
        )
        self._changed()

    def _house(self, resident: Resident) -> None:
        """Load a model that an earlier host held; one that cannot be any more is left out with its reason."""
        process = self._process
        if process is None or not self._residents.holds(resident):
            return
        reason = None
        try:
            self._move_in(process, resident, None)
            self._residents.loaded(resident)
            log.warning("model %s is back", resident.name, extra=event("model-back", model=resident.name))
            if not self._residents.holds(resident):  # closed meanwhile, when it was nowhere
                resident.move_out()
        except EngineFailedError as error:
            reason = str(error)
        except AnotherHostError:
            return
        except EngineDiedError:
            strikes = self._residents.strike(resident)
            if self._closing or strikes < self._rules.most_strikes:
                return
            reason = f"{resident.name}: the engine host died {strikes} times while loading it: build it again"
        if reason is not None:
            self.forget(resident)
            resident.refused(reason)
            log.error("model left out: %s", reason, extra=event("model-unavailable", model=resident.name))
        self._changed()

    def _move_in(self, process: HostProcess, resident: Resident, progress: Progress | None) -> None:
        what = f"loading {resident.name}"
        reply = self.ask(process, "load", resident.request(), self._rules.load_limit_s, what, progress)
        if not reply.get("ok"):
            raise EngineFailedError(f"{resident.name}: {reply.get('message')}")
        resident.moved_in(process, reply)
