"""The loop: take the newest frame, pass the gate, ask, and report which label holds now."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, NamedTuple

import numpy as np

from jetsel import image
from jetsel.base import errors
from jetsel.client import Client
from jetsel.gateway.cameras.gate import Gate, GateSetting
from jetsel.gateway.cameras.health import Health
from jetsel.gateway.cameras.newest import Newest
from jetsel.gateway.cameras.region import Region, fitting
from jetsel.gateway.cameras.saver import Saver
from jetsel.gateway.cameras.source import Capture, Folder, Reader, Source
from jetsel.wire import Answer

UNKNOWN = "unknown"


class ReportedLabel(NamedTuple):
    """What an event says of an answer. id: of the class; None, which no class has, if the answer is unknown."""

    label: str
    id: str | None


def reported_label(answer: Answer) -> ReportedLabel:
    """Return the answer's label and identifier; `unknown` and None if a promise does not cover it."""
    is_unknown = answer.in_doubt and answer.wrong_at_most is not None
    return ReportedLabel(UNKNOWN, None) if is_unknown else ReportedLabel(answer.label, answer.wnid)


class Change(NamedTuple):
    """answer: the one that settled it. previous: the label before, None at first. since_s: when the new one came."""

    answer: Answer
    previous: str | None
    since_s: float


class Labels:
    """Takes in answers one after the other. stay: how many in a row a new label needs."""

    def __init__(self, stay: int) -> None:
        self._stay = stay
        self._holds: Answer | None = None
        self._next: Answer | None = None
        self._since_s, self._n = 0.0, 0

    @property
    def is_settled(self) -> bool:
        """Whether no other label is on its way: until then each frame is a vote, however little it differs."""
        return self._holds is not None and self._next is None

    def see(self, answer: Answer, now_s: float) -> Change | None:
        """Take in a frame's answer, and return the change that it completes."""
        if self._holds is not None and reported_label(answer).id == reported_label(self._holds).id:
            self._next = None
            return None
        if self._next is None or reported_label(answer).id != reported_label(self._next).id:
            self._since_s, self._n = now_s, 0
        self._next = answer
        self._n += 1
        if self._n < self._stay:
            return None
        previous = None if self._holds is None else reported_label(self._holds).label
        self._holds, self._next = self._next, None
        return Change(self._holds, previous, self._since_s)


_LOOK_S = 0.25  # how soon it is seen that the daemon is there, or that a file has ended
_AGAIN_S = 0.1  # from a refusal that may pass to the next question
_MAX_PIXELS = 50_000_000  # of a picture in a folder: the daemon's own default
_AWAY = (errors.NoDaemonError, errors.NoReplyError, errors.LoadingError, errors.ShuttingDownError)
_MISTAKES = (
    errors.UnknownFamilyError,
    errors.UnknownModelError,
    errors.UnknownPolicyError,
    errors.BadRequestError,
    errors.RequirementsError,
)


class _AskAgainError(Exception):
    """The newest frame may have an answer a little later."""


@dataclass(frozen=True)
class WatchSettings:
    """What is asked of whom, and when; the options of `jetsel watch` describe each."""

    source: Source
    name: str
    region: Region
    endpoint: str | None
    asks: dict[str, Any]
    """Options of `Client.classify`."""
    every_s: float
    gate: GateSetting | None
    ask_again_s: float
    stay: int
    stall_s: float
    timeout_ms: float
    max_image_mb: float


class Watch:
    """One source and one daemon, either of which may go away and come back. It begins at once; end it with `close`.

    emit: gets each event, one at a time; available: whether source and daemon are both there; told: sentences for
    people. Any thread may call them.
    """

    def __init__(
        self,
        settings: WatchSettings,
        saver: Saver | None,
        *,
        emit: Callable[[dict[str, Any]], None],
        available: Callable[[bool], None],
        told: Callable[[str], None],
    ) -> None:
        self._settings, self._saver = settings, saver
        self._pass_on, self._available, self._told = emit, available, told
        self._lock = threading.Lock()
        self._there = {"source": False, "daemon": False}
        # A frame that is refused is out of date before it could be tried again.
        client = Client(settings.endpoint, timeout_ms=settings.timeout_ms, max_image_mb=settings.max_image_mb)
        client.retry = False
        self._client, self._gate, self._labels = (
            client,
            Gate(settings.gate, settings.ask_again_s),
            Labels(settings.stay),
        )
        self._refusals: set[str] = set()
        self._n_asked = self._n_changes = 0
        self._health = Health(settings.endpoint, settings.asks.get("family"), self._daemon_changed)
        self._newest = Newest(self._open, self._source_changed)

    def run(self) -> None:
        """Watch until a file ends, or the caller interrupts it. Raises JetselError if no answer is ever to come."""
        while True:
            is_over, is_there = self._newest.is_over, self._health.is_there
            if is_there and (frame := self._newest.take(_LOOK_S, self._settings.every_s)) is not None:
                try:
                    self._look(self._settings.region.of(frame))
                except _AskAgainError:
                    self._newest.give_back(frame)
                    time.sleep(_AGAIN_S)
            elif is_over and is_there is not None:  # None: it was not looked yet
                return
            elif not is_there:
                time.sleep(_LOOK_S)  # the newest frame waits meanwhile, or is replaced by a newer one

    def close(self) -> bool:
        """Stop, and tell what there was; False if the source hangs, so that only the process's end lets go of it."""
        has_ended = self._newest.close()
        self._health.close()
        self._client.close()
        gate, n_saved = self._gate, 0 if self._saver is None else self._saver.n_saved
        summary = self._counts() | {"frames_answered": gate.n_answered, "label_changes": self._n_changes}
        summary |= {"saved_ms": gate.saved_ms, "saved_mj": gate.saved_mj}
        self._emit("summary", **summary, source_returns=self._newest.n_back, pictures_saved=n_saved)
        energy = "an unknown amount of energy" if gate.saved_mj is None else f"{gate.saved_mj / 1e3:.3g} J"
        spared = ""
        if gate.saved_ms:
            spared = f", which saved about {gate.saved_ms / 1e3:.3g} s of the daemon's time and {energy}"
        self._told(
            f"{self._newest.n_read} frames read, {self._n_asked} sent, {gate.n_answered} answered; "
            f"{gate.n_skipped} hardly changed and were skipped{spared}; the label changed {self._n_changes} times, "
            f"the source reconnected {self._newest.n_back} times, {n_saved} images saved"
        )
        return has_ended

    def _look(self, frame: np.ndarray) -> None:
        if self._gate.skips(frame, time.monotonic()) and self._labels.is_settled:
            self._gate.n_skipped += 1
            return
        answer = self._ask(frame)
        if answer is None:
            return
        self._gate.answered(answer.stages_ms.total, answer.energy_mj)
        change = self._labels.see(answer, time.time())
        if self._saver is not None:
            self._saver.look(frame, answer)
        if change is None:
            return
        self._n_changes += 1
        answer = change.answer
        names = ("probability", "family", "model", "policy", "in_doubt", "wrong_at_most")
        told = reported_label(answer)._asdict() | {name: getattr(answer, name) for name in names}
        told |= {"previous": change.previous, "since": _stamp(change.since_s)}
        self._emit("label", **told, **self._counts())

    def _ask(self, frame: np.ndarray) -> Answer | None:
        """Return the answer, or None if this frame gets none, and say why once. Raises _AskAgainError too."""
        most_mb = self._settings.max_image_mb
        sent = fitting(frame, most_mb)
        if sent is not frame:
            sizes = f"{frame.shape[1]} x {frame.shape[0]} pixels are sent as {sent.shape[1]} x {sent.shape[0]}"
            self._tell_once("size", f"frames of {sizes}: --max-image-mb and the daemon allow {most_mb:g} MB")
        self._n_asked += 1
        try:
            answer: Answer = self._client.classify(sent, top_k=1, on_doubt="use", **self._settings.asks)
        except _AWAY as error:
            self._health.lost(str(error))
            raise _AskAgainError from None
        except errors.JetselError as error:
            if isinstance(error, _MISTAKES) and not self._gate.n_answered:
                raise
            self._tell_once(error.code, f"no answer: {error}; the next frames are still sent")
            if error.retry:
                raise _AskAgainError from None
            return None
        self._refusals &= {"size"}
        return answer

    def _tell_once(self, what: str, words: str) -> None:
        if what not in self._refusals:
            self._refusals.add(what)
            self._told(words)

    def _open(self, stop: threading.Event) -> Reader:
        source = self._settings.source
        if source.kind == "folder":
            limits = image.Limits(int(self._settings.max_image_mb * 1e6), _MAX_PIXELS)
            return Folder(source.text, limits, stop, self._told)
        return Capture(source, self._settings.stall_s, stop)

    def _source_changed(self, is_there: bool, reason: str, pause_s: float) -> None:
        name = self._settings.name
        gone = f"{name} is disconnected: {reason}; next try in {pause_s:g} s"
        self._told(f"{name}: frames come" if is_there else gone)
        if is_there != self._there["source"]:
            self._changed("source", "back" if is_there else "away", reason or None)

    def _daemon_changed(self, state: str, reason: str) -> None:
        self._told(f"the daemon is {state}: {reason}" if reason else "connected to the daemon")
        self._gate.forget()  # its models may be others
        self._changed("daemon", state, reason or None)

    def _changed(self, which: str, state: str, reason: str | None) -> None:
        self._emit(which, state=state, reason=reason)
        with self._lock:
            self._there[which] = state != "away"
            self._available(all(self._there.values()))

    def _counts(self) -> dict[str, Any]:
        read, skipped = self._newest.n_read, self._gate.n_skipped
        return {"frames_read": read, "frames_asked": self._n_asked, "frames_skipped": skipped}

    def _emit(self, event: str, **fields: Any) -> None:
        with self._lock:
            self._pass_on({"event": event, "time": _stamp(time.time()), "source": self._settings.name, **fields})


def _stamp(time_s: float) -> str:
    """Return a time as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(time_s, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
