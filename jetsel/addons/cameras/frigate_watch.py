"""Frigate's tracked objects: classifies each until its answers agree, then writes a sub-label, or reports why not."""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import msgspec

from jetsel.addons.cameras.frigate import (
    MOST_LETTERS,
    FrigateApi,
    FrigateError,
    FrigateMessages,
    TrackedObject,
    TrackedObjectMessage,
)
from jetsel.addons.cameras.labels import MOST_VOTES, SubLabel, Votes
from jetsel.addons.cameras.mqtt import ServerLogin
from jetsel.addons.cameras.settings import WatchContext
from jetsel.addons.cameras.watch import stamp
from jetsel.base.errors import JetselError
from jetsel.client import Client

AGAIN_S = 1.0  # pause between two requests about an object
_LOOK_S = 0.1
_THREADS = 4
_MOST_OBJECTS = 1000  # at a time
_REMEMBERED = 10_000  # finished objects that are remembered, so that a late message does not begin them again
_POLL_FOR_S = 60.0  # for this long an object is polled; later it is classified only after updates
_PATIENCE_S = 60.0  # after an object's end, for Frigate and the daemon to return
_SILENT_S = 300.0  # without a message of an object: look up whether it has ended
_LONGEST_PAUSE_S = 8.0
_LISTED = 500  # objects in one list of Frigate's newest


@dataclass
class Tracked:
    """One object of Frigate, on which one thread works at a time. Times are of the monotonic clock."""

    id: str
    camera: str
    label: str
    family: str
    seen_s: float  # last message about it
    began_s: float
    votes: Votes = field(default_factory=Votes)
    due_s: float = 0.0  # next classification, or retry
    ended_s: float | None = None  # when Frigate ended it; None: not yet
    is_busy: bool = False  # a thread works on it
    last_image: bytes = b""  # hash of it: the same image is not classified again
    problem: str = ""
    pause_s: float = AGAIN_S  # before the next retry
    result: SubLabel | None = None  # to be written
    is_final: bool = False  # it has ended, and its last image was classified


class _NewestObjects:
    """Frigate's list of its newest objects, as it was last read."""

    def __init__(self) -> None:
        self._listed: set[str] | None = None  # None before the first list
        self._oldest_s = -math.inf  # start of the last object in the list, if it was full

    def unlisted(self, newest: list[TrackedObject]) -> list[TrackedObject]:
        """Return the objects, the oldest first, whose ids the previous list lacked; [] for the first list.

        Objects that began before the end of a full previous list are not new: deletions made room for them.
        """
        before, self._listed = self._listed, {obj.id for obj in newest}
        is_full = len(newest) >= _LISTED
        oldest_s, self._oldest_s = self._oldest_s, newest[-1].start_time if is_full else -math.inf
        if before is None:
            return []
        return [obj for obj in reversed(newest) if obj.id not in before and obj.start_time >= oldest_s]


class FrigateWatch:
    """Begins at once; end it with `close`. families: Frigate's object label -> the family that classifies such objects.

    request: other fields of each request, as in Camera.request. prefix: mqtt.topic_prefix of Frigate.
    """

    def __init__(
        self,
        api: FrigateApi,
        context: WatchContext,
        broker: ServerLogin,
        families: Mapping[str, str],
        request: Mapping[str, Any],
        *,
        prefix: str = "frigate",
    ) -> None:
        self._api, self._context, self._families, self._request = api, context, families, dict(request)
        self._lock = threading.Lock()
        self._objects: dict[str, Tracked] = {}
        self._finished_ids: dict[str, None] = {}
        # Those that no thread uses now; one for each thread, because calls of one client wait for each other.
        self._clients = [Client(context.endpoint, timeout_ms=context.timeout_ms, retry=False) for _ in range(_THREADS)]
        self._newest = _NewestObjects()
        self._must_catch_up = threading.Event()  # set: read the list
        self._must_catch_up.set()
        self._counts = {"sub_label": 0, "no_sub_label": 0}  # by event
        self._trouble: set[str] = set()
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(_THREADS, "frigate")
        self._messages = FrigateMessages(broker, prefix, self._must_catch_up.set, self._received, context.on_message)

    def run(self) -> None:
        """Classify objects until `close`, or an exception such as KeyboardInterrupt."""
        while not self._stopping.wait(_LOOK_S):
            self._messages.report_silence()
            if self._must_catch_up.is_set():
                self._must_catch_up.clear()
                self._pool.submit(self._catch_up)
            now_s = time.monotonic()
            with self._lock:
                due = [obj for obj in self._objects.values() if not obj.is_busy and obj.due_s <= now_s]
                for obj in due:
                    obj.is_busy = True
            for obj in due:
                self._pool.submit(self._process, obj)

    def close(self) -> None:
        """End after `run`: report a reason for each undecided object. Requests under way end by their deadlines."""
        self._stopping.set()
        self._messages.close()
        self._pool.shutdown(cancel_futures=True)
        for obj in list(self._objects.values()):
            reason = obj.votes.why_none() or "its sub-label is not written yet"
            self._give_up(obj, f"jetsel watch was stopped: {reason}")
        for client in self._clients:
            client.close()
        self._emit_event("summary", **{f"{name}s": count for name, count in self._counts.items()})

    def _received(self, payload: bytes) -> None:
        message = msgspec.json.decode(payload, type=TrackedObjectMessage)
        self._update_object(message.after, is_end=message.type == "end")

    def _update_object(self, after: TrackedObject, *, is_end: bool) -> None:
        """Note an object's new state; end it if it may not get our sub-label. Ignore labels without a family."""
        now_s = time.monotonic()
        with self._lock:
            obj = self._objects.get(after.id)
            if obj is None:
                family = self._families.get(after.label)
                if family is None or after.false_positive or after.id in self._finished_ids:
                    return
                obj = Tracked(after.id, after.camera, after.label, family, now_s, now_s)
                if len(self._objects) < _MOST_OBJECTS:
                    self._objects[after.id] = obj
            obj.seen_s, obj.due_s = now_s, min(obj.due_s, now_s)
            if is_end and obj.ended_s is None:
                obj.ended_s = now_s
            reason = _end_reason(after, obj.result)
            if obj.id not in self._objects:
                reason = f"{_MOST_OBJECTS} objects are under way already"
        if reason is not None:
            self._give_up(obj, reason)

    def _catch_up(self) -> None:
        """Read what was missed while the broker was away: objects that began, and objects that ended."""
        with self._lock:
            under_way = [obj for obj in self._objects.values() if obj.ended_s is None]
        try:
            newest = self._api.list_newest(list(self._families), _LISTED)
            with self._lock:
                unlisted = self._newest.unlisted(newest)
            for state in unlisted:
                self._update_object(state, is_end=state.end_time is not None)
            for obj in under_way:
                if self._stopping.is_set():
                    return
                self._update_from_database(obj, has_ended_if_unknown=False)
            self._trouble.discard("catch-up")
        except Exception as error:  # even a defect, which the pool would hide
            self._tell_once("catch-up", f"what was missed cannot be read: {error}")
            if isinstance(error, FrigateError) and error.retry:
                self._must_catch_up.set()
            self._stopping.wait(AGAIN_S)

    def _update_from_database(self, obj: Tracked, *, has_ended_if_unknown: bool) -> None:
        """Process an object's state from Frigate's database."""
        state = self._api.read_object(obj.id)
        if state is not None:
            self._update_object(state, is_end=state.end_time is not None)
        elif has_ended_if_unknown:
            with self._lock:
                obj.seen_s = obj.due_s = time.monotonic()
                obj.ended_s = obj.seen_s if obj.ended_s is None else obj.ended_s

    def _process(self, obj: Tracked) -> None:
        try:
            if obj.result is None and not obj.is_final:
                self._classify(obj)
            if self._stopping.is_set() or obj.id not in self._objects:
                return
            if obj.result is not None:
                self._write_sub_label(obj, obj.result)
                self._trouble.discard("writing")
            elif obj.is_final or len(obj.votes) >= MOST_VOTES:
                self._give_up(obj, "; ".join(filter(None, (obj.votes.why_none(), obj.problem))))
        except FrigateError as error:
            self._retry_later(obj, "frigate" if obj.result is None else "writing", str(error), is_over=not error.retry)
        except JetselError as error:
            self._retry_later(obj, "daemon", str(error), is_over=False)
        except Exception as error:  # a defect in jetsel becomes the object's reason
            self._give_up(obj, f"a defect in jetsel: {type(error).__name__}: {error}")
        finally:
            obj.is_busy = False

    def _classify(self, obj: Tracked) -> None:
        """Classify the object's best image so far if it has changed, and set when it is due again."""
        now_s = time.monotonic()
        if obj.ended_s is None and now_s - obj.seen_s > _SILENT_S:
            self._update_from_database(obj, has_ended_if_unknown=True)
        seen_s, was_ended = obj.seen_s, obj.ended_s is not None
        image = self._api.snapshot(obj.id)
        self._trouble.discard("frigate")
        digest = b"" if image is None else hashlib.sha256(image).digest()
        if self._stopping.is_set():
            return
        if image is not None and digest != obj.last_image:
            request = self._request | {"family": obj.family}
            client = self._clients.pop()
            try:
                answer = client.classify(image, top_k=1, on_doubt="use", **request)
            finally:
                self._clients.append(client)
            self._trouble.discard("daemon")
            obj.votes.add(answer)
            obj.last_image, obj.problem = digest, ""
        is_polled = now_s - obj.began_s < _POLL_FOR_S or was_ended
        with self._lock:
            obj.pause_s, obj.result = AGAIN_S, obj.votes.result()
            obj.is_final = was_ended  # its image does not change any more
            if obj.seen_s == seen_s:  # otherwise a message has made it due
                obj.due_s = now_s + (AGAIN_S if is_polled else _SILENT_S)

    def _write_sub_label(self, obj: Tracked, result: SubLabel) -> None:
        """Write the sub-label, unless Frigate has set another or the object is a false positive by now."""
        self._update_from_database(obj, has_ended_if_unknown=True)
        if obj.id not in self._objects:
            return
        self._api.set_sub_label(obj.id, result.label, min(1.0, max(result.score, 1e-6)))
        self._finish(obj, "sub_label", sub_label=result.label, score=result.score, answers=result.votes)

    def _retry_later(self, obj: Tracked, who: str, problem: str, *, is_over: bool) -> None:
        """Note a failure and try again, or give up if the object ended long ago; report it once until it succeeds."""
        now_s = time.monotonic()
        obj.problem = problem
        if obj.pause_s == AGAIN_S:  # one object's repeated failure is not reported again
            self._tell_once(who, f"{obj.id}: {problem}")
        if is_over or (obj.ended_s is not None and now_s - obj.ended_s > _PATIENCE_S):
            self._give_up(obj, problem)
            return
        obj.due_s = now_s + obj.pause_s
        obj.pause_s = min(2 * obj.pause_s, _LONGEST_PAUSE_S)

    def _give_up(self, obj: Tracked, reason: str) -> None:
        self._finish(obj, "no_sub_label", reason=reason)

    def _finish(self, obj: Tracked, event: str, **fields: Any) -> None:
        """Report the result of an object once."""
        with self._lock:
            self._objects.pop(obj.id, None)
            if obj.id in self._finished_ids:
                return
            self._finished_ids[obj.id] = None
            if len(self._finished_ids) > _REMEMBERED:
                del self._finished_ids[next(iter(self._finished_ids))]
            self._counts[event] += 1
        self._emit_event(event, object=obj.id, camera=obj.camera, label=obj.label, family=obj.family, **fields)

    def _tell_once(self, what: str, words: str) -> None:
        if what not in self._trouble:
            self._trouble.add(what)
            self._context.on_message(words)

    def _emit_event(self, event: str, **fields: Any) -> None:
        self._context.emit({"event": event, "time": stamp(time.time()), "source": self._api.name, **fields})


def _end_reason(state: TrackedObject, result: SubLabel | None) -> str | None:
    """Return why an object may not get our sub-label, else None. result: ours, which Frigate may have already."""
    if state.false_positive:
        return "Frigate calls it a false positive"
    if state.name is not None and (result is None or state.name != result.label[:MOST_LETTERS]):
        return f"Frigate has the sub-label {state.name} for it already"
    return None
