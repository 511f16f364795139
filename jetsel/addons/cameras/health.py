"""Checks every second whether the daemon answers: it may be away, back, restarted or reloaded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from jetsel.client import Client
from jetsel.wire import StatusReply

_EVERY_S = 1.0
_LIMIT_MS = 1500.0  # a status takes milliseconds, even while all models run


class Health:
    """Checks until `close`, in a thread with its own connection.

    family: its models must run; None: the default one. on_change: called with "back" (also at first), "away" or
    "reloaded", and the reason.
    """

    def __init__(self, endpoint: str | None, family: str | None, on_change: Callable[[str, str], None]) -> None:
        self._client = Client(endpoint, timeout_ms=_LIMIT_MS, retry=False)
        self._family, self._report = family, on_change
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._last_status: StatusReply | None = None
        self.is_available: bool | None = None
        self._thread = threading.Thread(target=self._run, name="health", daemon=True)
        self._thread.start()

    def mark_away(self, reason: str) -> None:
        """Note that the daemon does not answer, and report it once; the next check that succeeds reports it back."""
        with self._lock:
            if self.is_available is not False:
                self.is_available = False
                self._report("away", reason)

    def close(self) -> None:
        """Stop the checks."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._process_status(self._client.status())
            except Exception as error:  # whatever fails, the daemon is checked again
                with suppress(Exception):  # a failing listener must not end the checks
                    self.mark_away(str(error) or type(error).__name__)
            self._stop.wait(_EVERY_S)
        self._client.close()

    def _process_status(self, status: StatusReply) -> None:
        reason = why_silent(status, self._family)
        if reason is not None:
            self.mark_away(reason)
            return
        with self._lock:
            before, self._last_status = self._last_status, status
            was_there, self.is_available = self.is_available, True
            if before is not None and before.pid != status.pid:
                self._report("back", "it was restarted")  # perhaps between two checks
            elif not was_there:
                self._report("back", "" if before is None else "it answers")
            if before is not None and before.pid == status.pid and before.reloads != status.reloads:
                last = status.last_reload
                changed = [] if last is None else [f"rejected: {last.refused}"] if last.refused else last.changed
                self._report("reloaded", "; ".join(changed) or "nothing changed")


def why_silent(status: StatusReply, family: str | None) -> str | None:
    """Return why a running daemon cannot classify images, None if it can."""
    if status.state != "ready":
        return f"it is {status.state}"
    answering = [one for one in status.families if one.name == (family or status.default_family)]
    models = [model for one in answering for model in one.models]
    if models and not any(model.serves for model in models):
        return f"no model of family {answering[0].name} runs: {models[0].name}: {models[0].reason or models[0].state}"
    return None
