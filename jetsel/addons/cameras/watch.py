"""One camera: takes the newest frame, passes it through the gate, sends it, and reports the label of each region."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from jetsel import image
from jetsel.addons.cameras.folder import Folder
from jetsel.addons.cameras.health import Health
from jetsel.addons.cameras.labels import reported_label
from jetsel.addons.cameras.mqtt import MqttPublisher
from jetsel.addons.cameras.newest import Newest
from jetsel.addons.cameras.region import RegionView, fitting
from jetsel.addons.cameras.saver import Saver
from jetsel.addons.cameras.settings import WatchSettings
from jetsel.addons.cameras.source import Capture, Reader, reason_of, source_of
from jetsel.base import errors
from jetsel.client import Client
from jetsel.gateway.camera_states import CameraState
from jetsel.wire import Answer

_CHECK_EVERY_S = 0.25  # longest delay before a change of the daemon, the end of a file, or a stop is noticed
_RETRY_PAUSE_S = 0.1  # pause before a frame is sent again
_SILENT_S = 60.0
_AWAY = (errors.NoDaemonError, errors.NoReplyError, errors.LoadingError, errors.ShuttingDownError)
_MISTAKES = (
    errors.UnknownFamilyError,
    errors.UnknownModelError,
    errors.UnknownPolicyError,
    errors.BadRequestError,
    errors.RequirementsError,
)


class _AskAgainError(Exception):
    """The daemon may answer the newest frame a little later."""


class Watch:
    """Watches one source with one daemon, both of which may fail and return. It begins at once; end it with `close`.

    The context and the topics receive each event, one at a time, and sentences for people, from any thread.
    """

    def __init__(self, settings: WatchSettings) -> None:
        self._source, self._saver = settings.source, None
        self._camera, self._context = camera, context = settings.camera, settings.context
        if camera.save is not None:
            self._saver = Saver(Path(camera.save), int(camera.save_mb * 1e6), camera.save_below, self.tell)
        self._publishers: dict[str | None, MqttPublisher] = {}  # by region
        for region, topic in settings.topics.items():
            name = camera.name if region is None else f"{camera.name} {region}"
            if context.broker is not None:
                self._publishers[region] = MqttPublisher(context.broker, topic, name, self.tell)
        self._lock = threading.Lock()
        self._available: dict[str, bool | None] = {"source": None, "daemon": False, "watch": False}  # None: unknown yet
        self._reason: str | None = "it was not opened yet"  # why no frame comes
        # No retry in the client: a refused frame is out of date before it.
        self._client = Client(
            context.endpoint, timeout_ms=context.timeout_ms, max_image_mb=context.max_image_mb, retry=False
        )
        self._views = [
            RegionView(name, region, settings.gate, camera.ask_again_s, camera.stay)
            for name, region in settings.regions.items()
        ]
        self._stopping = threading.Event()
        self._refusals: set[str] = set()
        self._health = Health(context.endpoint, camera.family, self._daemon_changed)
        self._newest = Newest(self._open, self._source_changed)

    def run(self) -> None:
        """Watch until a file ends or `stop` is called. Raises JetselError if no request can ever succeed.

        After any exception, the camera counts as disconnected until it is run again.
        """
        try:
            self._set_available("watch", True)
            self._watch()
        except Exception as error:
            self._reason = reason_of(error)
            self._set_available("watch", False)
            raise

    def _watch(self) -> None:
        """Process the newest frame whenever the daemon is available, until a file ends or `stop` is called.

        A frame that the daemon could not answer yet is given back, and continues with the region that got no answer,
        unless a newer one comes.
        """
        given_back: np.ndarray | None = None
        waiting: list[RegionView] = []  # regions that have not processed that frame
        while not self._stopping.is_set():
            is_over, is_daemon_available = self._newest.is_over, self._health.is_available
            if self._source.kind != "folder" and not is_over and time.monotonic() - self._newest.last_s > _SILENT_S:
                self._tell_once("silence", f"no frame has come for a minute: {self._reason or 'the source is silent'}")
            frame = self._newest.take_frame(_CHECK_EVERY_S, self._camera.every_s) if is_daemon_available else None
            if frame is not None:
                waiting = waiting if frame is given_back else list(self._views)
                try:
                    while waiting:
                        self._process_region(waiting[0], frame)
                        del waiting[0]
                except _AskAgainError:
                    given_back = frame
                    self._newest.give_back(frame)
                    self._stopping.wait(_RETRY_PAUSE_S)
            elif is_over and is_daemon_available is not None:  # None: the daemon was not checked yet
                return
            elif not is_daemon_available:
                self._stopping.wait(_CHECK_EVERY_S)  # the newest frame waits, or is replaced by a newer one

    def stop(self) -> None:
        """Make `run` return soon. Any thread may call."""
        self._stopping.set()

    def close(self) -> bool:
        """End after `run`, and report a summary; return False if the source hangs until the process ends."""
        has_ended = self._newest.close()
        self._health.close()
        self._client.close()
        gates, n_saved = [view.gate for view in self._views], 0 if self._saver is None else self._saver.n_saved
        n_answered, n_changes = sum(gate.n_answered for gate in gates), sum(view.n_changes for view in self._views)
        saved_ms = _sum_of_known([gate.saved_ms for gate in gates])
        saved_mj = _sum_of_known([gate.saved_mj for gate in gates])
        counts = self._counts(*self._views) | {"frames_answered": n_answered, "label_changes": n_changes}
        counts |= {"saved_ms": saved_ms, "saved_mj": saved_mj}
        self._emit("summary", None, **counts, source_returns=self._newest.n_back, pictures_saved=n_saved)
        energy = "an unknown amount of energy" if saved_mj is None else f"{saved_mj / 1e3:.3g} J"
        spared = f", which saved about {saved_ms / 1e3:.3g} s of the daemon's time and {energy}" if saved_ms else ""
        self.tell(
            f"{self._newest.n_read} frames read, {counts['frames_asked']} sent, {n_answered} answered; "
            f"{counts['frames_skipped']} hardly changed and were skipped{spared}; the label changed {n_changes} times, "
            f"the source reconnected {self._newest.n_back} times, {n_saved} images saved"
        )
        run_in_parallel(MqttPublisher.close, self._publishers.values())
        return has_ended

    def tell(self, words: str) -> None:
        """Report a sentence about this camera to people."""
        self._context.on_message(f"{self._camera.name}: {words}")

    def states(self) -> list[CameraState]:
        """Return the state of each region."""
        states, is_connected = [], bool(self._available["source"] and self._available["watch"])
        for view in self._views:
            held = view.current_label
            label, wnid = (None, None) if held is None else reported_label(held.answer)
            states.append(
                CameraState(
                    name=self._camera.name,
                    region=view.name,
                    family=self._camera.family,
                    connected=is_connected,
                    reason=None if is_connected else (self._reason or "")[:512],
                    label=label,
                    wnid=wnid,
                    probability=None if held is None else held.answer.probability,
                    since=None if held is None else stamp(held.since_s),
                    frames_read=self._newest.n_read,
                    frames_skipped=view.gate.n_skipped,
                    frames_asked=view.n_sent,
                    label_changes=view.n_changes,
                )
            )
        return states

    def _process_region(self, view: RegionView, frame: np.ndarray) -> None:
        if view.skips(frame, time.monotonic()):
            return
        assert view.frame_part is not None
        answer = self._ask(view, view.frame_part)
        if answer is None:
            return
        change = view.record_answer(answer, time.time())
        if self._saver is not None:
            self._saver.save_if_doubtful(view.frame_part, answer)
        if change is None:
            return
        names = ("probability", "family", "model", "policy", "in_doubt", "wrong_at_most")
        fields = reported_label(change.answer)._asdict() | {name: getattr(change.answer, name) for name in names}
        fields |= {"previous": change.previous, "since": stamp(change.since_s)}
        self._emit("label", view.name, **fields, **self._counts(view))

    def _ask(self, view: RegionView, region_image: np.ndarray) -> Answer | None:
        """Return the answer; None, with one report of the reason, if there is none. Raises _AskAgainError too."""
        most_mb = self._context.max_image_mb
        sent = fitting(region_image, most_mb)
        if sent is not region_image:
            (height, width), (sent_height, sent_width) = region_image.shape[:2], sent.shape[:2]
            sizes = f"{width} x {height} pixels are sent as {sent_width} x {sent_height}"
            self._tell_once("size", f"frames of {sizes}: --max-image-mb and the daemon allow {most_mb:g} MB")
        view.n_sent += 1
        try:
            answer: Answer = self._client.classify(sent, top_k=1, on_doubt="use", **self._camera.request)
        except _AWAY as error:
            self._health.mark_away(str(error))
            raise _AskAgainError from None
        except errors.JetselError as error:
            if isinstance(error, _MISTAKES) and not any(one.gate.n_answered for one in self._views):
                raise
            self._tell_once(error.code, f"no answer: {error}; the next frames are still sent")
            if error.retry:
                raise _AskAgainError from None
            return None
        self._refusals &= {"size"}
        return answer

    def _tell_once(self, topic: str, words: str) -> None:
        if topic not in self._refusals:
            self._refusals.add(topic)
            self.tell(words)

    def _open(self, stop: threading.Event) -> Reader:
        if self._source.kind == "file":  # or a folder that did not exist before
            self._source = source_of(self._source.text, may_be_absent=True)
        limits = image.Limits(int(self._context.max_image_mb * 1e6), int(self._context.max_megapixels * 1e6))
        if self._source.kind == "folder":
            return Folder(self._source.text, limits, stop, self.tell)
        return Capture(self._source, self._camera.stall_s, stop, limits)

    def _source_changed(self, is_available: bool, reason: str, pause_s: float) -> None:
        self.tell("frames come" if is_available else f"disconnected: {reason}; next try in {pause_s:g} s")
        self._reason = reason or None
        if is_available != self._available["source"]:
            self._report_change("source", "back" if is_available else "away", reason or None)

    def _daemon_changed(self, state: str, reason: str) -> None:
        self.tell(f"the daemon is {state}: {reason}" if reason else "connected to the daemon")
        for view in self._views:
            view.gate.forget()  # its models may have changed
        self._report_change("daemon", state, reason or None)

    def _report_change(self, which: str, state: str, reason: str | None) -> None:
        self._emit(which, None, state=state, reason=reason)
        self._set_available(which, state != "away")

    def _set_available(self, which: str, is_available: bool) -> None:
        with self._lock:
            self._available[which] = is_available
            for publisher in self._publishers.values():
                publisher.publish_availability(all(self._available.values()))

    def _counts(self, *views: RegionView) -> dict[str, Any]:
        skipped, n_sent = sum(view.gate.n_skipped for view in views), sum(view.n_sent for view in views)
        return {"frames_read": self._newest.n_read, "frames_asked": n_sent, "frames_skipped": skipped}

    def _emit(self, event: str, region: str | None, **fields: Any) -> None:
        where = {"source": self._camera.name} | ({} if region is None else {"region": region})
        with self._lock:
            sent = {"event": event, "time": stamp(time.time()), **where, **fields}
            self._context.emit(sent)
            for name, publisher in self._publishers.items():
                if region is None or name == region:
                    publisher.publish_event(sent)


def run_in_parallel(end: Callable[[Any], Any], things: Collection[Any]) -> list[Any]:
    """End each in its own thread, so that many that hang take no longer than one."""
    with ThreadPoolExecutor(max(1, len(things))) as pool:
        return list(pool.map(end, things))


def _sum_of_known(values: list[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None


def stamp(time_s: float) -> str:
    """Return a time as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(time_s, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
