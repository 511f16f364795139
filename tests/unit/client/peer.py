"""A ROUTER that answers as its script says: the daemon's end of the real wire, for tests of clients."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import zmq

from jetsel import wire
from jetsel.wire.counts import AnswerCounts, Histogram
from jetsel.wire.power import EstimatesJudged, PowerStatus
from jetsel.wire.status import FamilyStatus, ModelStatus, QueueStatus


@dataclass(frozen=True)
class Seen:
    """One request as it came. `image` is None where there was no second frame."""

    request: wire.Request
    image: bytes | None


Script = Callable[[list[Seen]], Sequence[wire.Reply | bytes]]
"""Given all requests so far, the newest last: what to send now."""


class Peer:
    """Answers on ipc://PATH from its own thread until the `with` ends."""

    def __init__(self, path: Path, script: Script, max_message_bytes: int = -1) -> None:
        self.endpoint = f"ipc://{path}"
        self.seen: list[Seen] = []
        self._script = script
        self._max_message_bytes = max_message_bytes
        self._stop = threading.Event()
        self._listens = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Peer:
        self._thread.start()
        assert self._listens.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)
        assert not self._thread.is_alive()

    def _serve(self) -> None:
        with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
            router.setsockopt(zmq.LINGER, 200)
            router.setsockopt(zmq.MAXMSGSIZE, self._max_message_bytes)
            router.bind(self.endpoint)
            self._listens.set()
            while not self._stop.is_set():
                if router.poll(10):
                    peer, _delimiter, message, *image = router.recv_multipart()
                    self.seen.append(Seen(wire.decode_request(message), image[0] if image else None))
                    for reply in self._script(self.seen):
                        frame = reply if isinstance(reply, bytes) else wire.encode(reply)
                        router.send_multipart([peer, b"", frame])


def answer(seen: Seen, label: str = "tabby") -> wire.Answer:
    """An answer to this request, by a model named m, of half a millisecond in each stage."""
    request = seen.request
    assert isinstance(request, wire.Classify)
    return wire.Answer(
        v=1,
        id=request.id,
        family="f",
        label=label,
        wnid="n02123045",
        probability=0.75,
        top_k=[wire.Ranked(label, "n02123045", 0.75), wire.Ranked("lion", "n02129165", 0.125)],
        model="m",
        policy=request.policy or "single:m",
        because="it is sure",
        in_doubt=False,
        cut_short=False,
        ran=[wire.Ran("m", "it stands first", 0.75, 1.5, 1)],
        stages_ms=wire.Stages(queue=0.5, decode=0.5, features=None, choice=0.5, inference=[1.5], total=3.0),
        energy_mj=None,
        energy_reason="no meter",
        width_px=4,
        height_px=2,
        explanation=wire.Explanation({"contrast": 0.5}, 0.25, ["m is sure"], 4, 2) if request.explain else None,
    )


BOUNDS_MS = [2.0, 4.0, 8.0]  # of the histograms, which have a bin more

UNMEASURED = PowerStatus(reason="no power sensor under /sys", judged=EstimatesJudged(None, None, 0.0, 0.0, 0, 0))


def status(seen: Seen) -> wire.StatusReply:
    """The status of a daemon with one family of two models, of which one failed to load."""
    models = [
        ModelStatus("m", "1.0.0", "ready", None, 7, "onnxruntime", 3, 53.125),
        ModelStatus("big", "1.0.0", "unavailable", "out of memory", 0, "tensorrt"),
    ]
    family = FamilyStatus("f", 2, models, ["single:m", "cascade"], "cascade", "it does best", "m")
    return wire.StatusReply(
        v=1,
        id=seen.request.id,
        state="ready",
        version="9.9.9",
        pid=4711,
        instance="1f0c2a9b",
        uptime_s=93_784.0,
        endpoints=["ipc:///run/x.sock"],
        default_family="f",
        families=[family],
        broken=["/models/bad.json: no JSON"],
        requests={"ok": 7, "busy": 1},
        queue=QueueStatus(1, 1, 2, 1_500_000, 500_000, 128, 64_000_000),
        power=UNMEASURED,
        answers=AnswerCounts({}, {}, 0, 0, 0, 0, BOUNDS_MS, {"total": Histogram([0, 2, 4, 1], 56.0)}, {}),
        max_image_mb=16.0,
        lost_replies=3,
        resident_mb=121.4,
    )


def fail(seen: Seen, code: str, retry: bool) -> wire.Failure:
    return wire.Failure(1, seen.request.id, code, retry, f"this is {code}")


def echo(seen: list[Seen]) -> Sequence[wire.Reply]:
    """Answer with a label that is the image's bytes."""
    return [answer(seen[-1], (seen[-1].image or b"").decode())]


def silent(seen: list[Seen]) -> Sequence[wire.Reply]:
    return []


def daemon_like(seen: list[Seen]) -> Sequence[wire.Reply]:
    """Answer every kind of request as a daemon would; an image that begins with 'bad' is none."""
    newest = seen[-1]
    if isinstance(newest.request, wire.Status):
        return [status(newest)]
    if isinstance(newest.request, wire.Reload):
        return [wire.Reloaded(1, newest.request.id, ["model m"])]
    if (newest.image or b"").startswith(b"bad"):
        return [fail(newest, "bad-image", retry=False)]
    return [answer(newest)]
