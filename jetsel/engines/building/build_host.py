"""The engine host of one build: a process of its own with limits, whose end is told with its cause and what helps."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jetsel.engines.base import EngineFailedError
from jetsel.engines.hosting.link import Feed, LinkBrokenError, LinkTimeoutError
from jetsel.engines.hosting.process import HostProcess, Start
from jetsel.engines.hosting.running import Loaded
from jetsel.weights import Weights

Tell = Callable[[str, float | None], None]
"""Takes a stage of the build, and how much of it is done from 0 to 1, None where that is not known."""

MODEL = 1  # the number of the one model that the host loads
END_S = 1.0  # for a host that broke off to end by itself, so that its signal can be told


@dataclass(frozen=True)
class BuildLimits:
    """How long one build may take: until the host says hello, without a report of progress, and in all."""

    hello_s: float = 60.0
    silence_s: float = 900.0
    total_s: float = 14_400.0


LIMITS = BuildLimits()


class BuildHost:
    """A context that starts the host and ends it. Its methods raise EngineFailedError that names the repair."""

    def __init__(self, start: Start, weights: Weights, limits: BuildLimits, tell: Tell) -> None:
        self._weights, self._limits, self._tell = weights, limits, tell
        self._give_up_s = time.monotonic() + limits.total_s
        self._process = HostProcess(start)
        self.memory = self._process.memory

    def __enter__(self) -> BuildHost:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._process.leave() if kind is None else self._process.kill()

    def ask(self, kind: str, request: Mapping[str, Any], feed: Feed | None = None) -> dict[str, Any]:
        """Ask the host one thing and return its reply, whether it says ok or not."""
        name = self._weights.name
        try:
            return self._process.exchange(kind, request, self._limits.silence_s, self._progress, feed, self._late)
        except LinkTimeoutError as error:
            raise EngineFailedError(
                f"{name}: its build gave no sign of life for {self._limits.silence_s:g} s and was killed ({error}): "
                "lower [host] workspace_mb, and see what it said last"
            ) from None
        except LinkBrokenError as error:
            if (why := self._late()) is not None:
                raise EngineFailedError(f"{name}: its build {why}") from None
            how = self._process.kill(END_S)
            cause = "most likely no memory was left" if "SIGKILL" in how else "see NVIDIA/TensorRT issue 1404"
            raise EngineFailedError(
                f"{name}: its build died: {error} ({how}): {cause}: lower [host] workspace_mb, or stop what else runs"
            ) from None

    def load(self, request: Mapping[str, Any]) -> tuple[Loaded, dict[str, Any]]:
        """Load the model; return it and the host's reply."""
        reply = good(self._weights, self.ask("load", {"model": MODEL, **request}))
        return Loaded(MODEL, self._weights, reply["max_batch"], reply["embedding_width"]), reply

    def _progress(self, stage: str) -> None:
        self._tell(stage, None)

    def _late(self) -> str | None:
        if time.monotonic() > self._give_up_s:
            return (
                f"took longer than {self._limits.total_s:g} s and was killed: allow it more with --limit-s, or lower "
                "[host] workspace_mb"
            )
        return None


def good(weights: Weights, reply: dict[str, Any]) -> dict[str, Any]:
    """Return a reply that says ok; raises EngineFailedError with the host's reason."""
    if not reply["ok"]:
        raise EngineFailedError(f"{weights.name}: {reply.get('message')}")
    return reply
