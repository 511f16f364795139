"""Frigate's tracked objects: each is asked about until its answers agree, and gets a sub-label or a reason why not."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from jetsel.base.errors import JetselError
from jetsel.client import Client
from jetsel.gateway.cameras.frigate import FrigateApi, FrigateError, Snapshot, read_message
from jetsel.gateway.cameras.mqtt import Broker
from jetsel.gateway.cameras.sub_labels import MOST_VOTES, SubLabel, Votes
from jetsel.gateway.cameras.watch import stamp

TOPIC = "frigate/events"
_LOOK_S = 0.1
_THREADS = 4
_MOST_OBJECTS = 1000  # at a time
_REMEMBERED = 10_000  # objects that are done: a late message of one begins nothing
_POLL_FOR_S = 60.0  # after its start an object is asked about by itself; later only if Frigate sends an update
_PATIENCE_S = 60.0  # after an object's end, for Frigate and the daemon to be back
_SILENT_S = 300.0  # without a message of an object: Frigate is asked whether it has ended
_AGAIN_S = 1.0
_LONGEST_PAUSE_S = 8.0
_MISSED = 100  # objects that began while the broker was away, at most
_KEEPALIVE_S = 15


@dataclass
class Tracked:
    """One object of Frigate's. Times are of the monotonic clock."""

    id: str
    camera: str
    label: str
    family: str
    seen_s: float
    began_s: float
    votes: Votes = field(default_factory=Votes)
    due_s: float = 0.0
    ended_s: float | None = None
    is_busy: bool = False
    last_image: bytes = b""  # its hash: the same image is no further vote
    problem: str = ""
    pause_s: float = _AGAIN_S
    result: SubLabel | None = None
    is_final: bool = False  # all that can be asked about it was, after its end


class FrigateWatch:
    """Begins at once; end it with `close`. families: by the label of an object, the family that answers.

    emit: gets each event; told: sentences for people. Any thread may call them.
    """

    def __init__(
        self,
        api: FrigateApi,
        name: str,
        broker: Broker,
        endpoint: str | None,
        families: Mapping[str, str],
        asks: Mapping[str, Any],
        timeout_ms: float,
        *,
        emit: Callable[[dict[str, Any]], None],
        told: Callable[[str], None],
    ) -> None:
        self._api, self._name, self._families, self._asks = api, name, families, dict(asks)
        self._endpoint, self._timeout_ms = endpoint, timeout_ms
        self._emit, self._told = emit, told
        self._lock = threading.Lock()
        self._objects: dict[str, Tracked] = {}
        self._done: dict[str, None] = {}
        self._local = threading.local()
        self._clients: list[Client] = []
        self._newest_start_s = time.time()  # of the objects that were seen, by Frigate's clock
        self._has_missed = False
        self._counts = {"sub_label": 0, "no_sub_label": 0}
        self._trouble: set[str] = set()
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(_THREADS, "frigate")
        self._broker = client = paho.Client(CallbackAPIVersion.VERSION2)
        client.username_pw_set(broker.user, broker.password)
        if broker.tls:
            client.tls_set()
        client.reconnect_delay_set(1, 30)
        client.on_connect = self._connected
        client.on_disconnect = self._disconnected
        client.on_message = lambda _, __, message: self._received(bytes(message.payload))
        client.connect_async(broker.host, broker.port, _KEEPALIVE_S)
        client.loop_start()

    def run(self) -> None:
        """Ask about objects until `stop`."""
        while not self._stopping.wait(_LOOK_S):
            if self._has_missed:
                self._has_missed = False
                self._pool.submit(self._catch_up)
            now_s = time.monotonic()
            with self._lock:
                due = [one for one in self._objects.values() if not one.is_busy and one.due_s <= now_s]
                for one in due:
                    one.is_busy = True
            for one in due:
                self._pool.submit(self._step, one)

    def stop(self) -> None:
        """Have `run` return soon."""
        self._stopping.set()

    def close(self) -> None:
        """End after `run`: what is not decided gets its reason."""
        self._broker.on_disconnect = None
        self._broker.disconnect()
        self._broker.loop_stop()
        self._pool.shutdown()
        for one in list(self._objects.values()):
            self._end(one, f"jetsel watch was stopped: {one.votes.why_none()}")
        for client in self._clients:
            client.close()
        self._say("summary", **{f"{name}s": count for name, count in self._counts.items()})

    # What Frigate says.

    def _connected(self, client: paho.Client, _: Any, __: Any, reason: Any, ___: Any) -> None:
        if reason.is_failure:
            self._tell_once("broker", f"the MQTT broker refuses: {reason}; it is tried again")
            return
        client.subscribe(TOPIC, qos=1)
        if "broker" in self._trouble:
            self._trouble.discard("broker")
            self._told("the MQTT broker is available again")
        else:
            self._told(f"connected to the MQTT broker; waiting for {TOPIC}")
        self._has_missed = bool(self._counts["sub_label"] or self._counts["no_sub_label"] or self._objects)

    def _disconnected(self, *_: Any) -> None:
        self._tell_once("broker", "the MQTT broker hung up; it is tried again")

    def _received(self, payload: bytes) -> None:
        message = read_message(payload)
        if message is None:
            self._tell_once("message", f"a message of {TOPIC} cannot be read: is it Frigate's?")
        else:
            self._take(message.after, is_end=message.type == "end")

    def _take(self, after: Snapshot, *, is_end: bool) -> None:
        """Take in an object's state; one of a label without a family is none of ours."""
        family = self._families.get(after.label)
        if family is None or after.false_positive:
            return
        now_s = time.monotonic()
        with self._lock:
            self._newest_start_s = max(self._newest_start_s, after.start_time)
            one = self._objects.get(after.id)
            if one is None:
                if after.id in self._done:
                    return
                is_full = len(self._objects) >= _MOST_OBJECTS
                one = Tracked(after.id, after.camera, after.label, family, now_s, now_s)
                if not is_full:
                    self._objects[after.id] = one
            else:
                is_full = False
            one.seen_s, one.due_s = now_s, min(one.due_s, now_s)
            if is_end and one.ended_s is None:
                one.ended_s = now_s
        if is_full:
            self._end(one, f"{_MOST_OBJECTS} objects are under way already")

    def _catch_up(self) -> None:
        """Look what was missed while the broker was away: objects that ended, and those that began."""
        with self._lock:
            since_s, under_way = self._newest_start_s, [one for one in self._objects.values() if one.ended_s is None]
        try:
            for snapshot in reversed(self._api.since(since_s, _MISSED)):
                self._take(snapshot, is_end=snapshot.end_time is not None)
            for one in under_way:
                self._look_whether_ended(one, if_unknown=False)
        except FrigateError as error:
            self._tell_once("catch-up", f"what was missed cannot be read: {error}")
            self._has_missed = error.retry
            self._stopping.wait(_AGAIN_S)

    def _look_whether_ended(self, one: Tracked, *, if_unknown: bool) -> None:
        one.seen_s = time.monotonic()
        has_ended = self._api.has_ended(one.id)
        if if_unknown if has_ended is None else has_ended:
            one.ended_s = time.monotonic() if one.ended_s is None else one.ended_s
            one.due_s = 0.0

    # One object, by one thread at a time.

    def _step(self, one: Tracked) -> None:
        try:
            if self._stopping.is_set():
                return
            if one.result is None and not one.is_final:
                self._ask(one)
                one.result = one.votes.result()
                if one.result is None and len(one.votes) >= MOST_VOTES:
                    self._end(one, one.votes.why_none())
                    return
            if one.result is not None:
                self._write(one, one.result)
            elif one.is_final:
                self._end(one, one.votes.why_none() + (f"; {one.problem}" if one.problem else ""))
        except FrigateError as error:
            self._failed(one, str(error), is_over=not error.retry)
        except JetselError as error:
            self._failed(one, str(error), is_over=False)
        except Exception as error:  # a defect of ours: the object gets it as its reason
            self._end(one, f"a defect in jetsel: {type(error).__name__}: {error}")
        finally:
            one.is_busy = False

    def _ask(self, one: Tracked) -> None:
        """Ask about the object's best image so far, if it is another; set when it is due again."""
        now_s = time.monotonic()
        if one.ended_s is None and now_s - one.seen_s > _SILENT_S:
            self._look_whether_ended(one, if_unknown=True)
        was_ended = one.ended_s is not None
        image = self._api.snapshot(one.id)
        digest = b"" if image is None else hashlib.sha256(image).digest()
        if image is not None and digest != one.last_image:
            answer = self._client().classify(image, family=one.family, top_k=1, on_doubt="use", **self._asks)
            one.votes.add(answer)
            one.last_image, one.problem = digest, ""
        one.pause_s = _AGAIN_S
        one.is_final = was_ended  # its image does not change any more
        is_polled = now_s - one.began_s < _POLL_FOR_S or was_ended
        one.due_s = now_s + (_AGAIN_S if is_polled else _SILENT_S)

    def _write(self, one: Tracked, result: SubLabel) -> None:
        self._api.set_sub_label(one.id, result.label, min(1.0, max(result.score, 1e-6)))
        with self._lock:
            if self._objects.pop(one.id, None) is None:
                return
            self._remember(one.id)
            self._counts["sub_label"] += 1
        self._say("sub_label", **self._about(one), sub_label=result.label, score=result.score, answers=result.votes)

    def _failed(self, one: Tracked, problem: str, *, is_over: bool) -> None:
        """Try again, until the object has ended for too long."""
        now_s = time.monotonic()
        one.problem = problem
        self._tell_once(problem.partition(":")[0], f"{one.id}: {problem}")
        if is_over or (one.ended_s is not None and now_s - one.ended_s > _PATIENCE_S):
            self._end(one, problem)
            return
        one.due_s = now_s + one.pause_s
        one.pause_s = min(2 * one.pause_s, _LONGEST_PAUSE_S)

    def _end(self, one: Tracked, reason: str) -> None:
        with self._lock:
            self._objects.pop(one.id, None)
            if one.id in self._done:
                return
            self._remember(one.id)
            self._counts["no_sub_label"] += 1
        self._say("no_sub_label", **self._about(one), reason=reason)

    def _remember(self, event_id: str) -> None:
        self._done[event_id] = None
        if len(self._done) > _REMEMBERED:
            del self._done[next(iter(self._done))]

    @staticmethod
    def _about(one: Tracked) -> dict[str, Any]:
        return {"object": one.id, "camera": one.camera, "label": one.label, "family": one.family}

    def _client(self) -> Client:
        """Return this thread's client."""
        if not hasattr(self._local, "client"):
            self._local.client = Client(self._endpoint, timeout_ms=self._timeout_ms, retry=False)
            self._clients.append(self._local.client)
        client: Client = self._local.client
        return client

    def _tell_once(self, what: str, words: str) -> None:
        if what not in self._trouble:
            self._trouble.add(what)
            self._told(words)

    def _say(self, event: str, **fields: Any) -> None:
        self._emit({"event": event, "time": stamp(time.time()), "source": self._name, **fields})
