"""Frigate's HTTP API as its documentation and source have it at 0.16 to 0.18, for the tests: objects, login, limits.

What it answers: frigate/api/event.py, media.py and auth.py.
"""

import json
import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

USER, PASSWORD = "admin", "correct horse battery"
MOST_LETTERS = 100


@dataclass
class FrigateObject:
    """A tracked object: its images so far, the best last."""

    id: str
    label: str
    camera: str = "garden"
    start_time: float = 0.0
    end_time: float | None = None
    images: list[bytes] = field(default_factory=list)
    sub_labels: list[tuple[str, float]] = field(default_factory=list)  # as they were written
    shown: set[bytes] = field(default_factory=set)  # images that somebody fetched

    def state(self) -> dict[str, Any]:
        """As a message and /api/events have it."""
        names = ("id", "label", "camera", "start_time", "end_time")
        written = list(self.sub_labels[-1]) if self.sub_labels else None
        return {name: getattr(self, name) for name in names} | {"sub_label": written, "false_positive": False}


class FrigateServer:
    """Frigate on loopback. has_login: whether it wants a token.

    answers: by the last part of a path, replies that always come instead.
    """

    def __init__(self, *, has_login: bool = False) -> None:
        self.objects: dict[str, FrigateObject] = {}
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.asked: Counter[str] = Counter()
        self.tokens: set[str] = set()
        self.has_login = has_login
        self.lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._reply(server.answer("GET", self.path, b"", self.headers.get("Authorization", "")))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self._reply(server.answer("POST", self.path, body, self.headers.get("Authorization", "")))

            def _reply(self, reply: tuple[int, bytes]) -> None:
                status, body = reply
                self.send_response(status)
                if self.path == "/api/login" and status == 200:
                    self.send_header("Set-Cookie", f"frigate_token={server.new_token()}; HttpOnly; Path=/")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def new_token(self) -> str:
        with self.lock:
            token = f"token-{len(self.tokens)}-{self.asked['login']}"
            self.tokens.add(token)
            return token

    def answer(self, method: str, path: str, body: bytes, authorization: str) -> tuple[int, bytes]:
        """Return status and body."""
        parts = urlsplit(path)
        *_, last = parts.path.split("/")
        with self.lock:
            self.asked[last] += 1
            if last == "login":
                given = json.loads(body)
                is_right = (given["user"], given["password"]) == (USER, PASSWORD)
                return (200, b"") if is_right else (401, b'{"message":"Login failed"}')
            if self.has_login and authorization.removeprefix("Bearer ") not in self.tokens:
                return 401, b'{"message":"Unauthorized"}'
            if last in self.answers:
                return self.answers[last]
            if parts.path == "/api/events":
                asked = parse_qs(parts.query)
                labels = asked["labels"][0].split(",")
                newest = sorted(self.objects.values(), key=lambda one: one.start_time, reverse=True)
                found = [one.state() for one in newest if one.label in labels]
                return 200, json.dumps(found[: int(asked["limit"][0])]).encode()
            one = self.objects.get(parts.path.split("/")[3])
            if one is None:
                return 404, b'{"success":false,"message":"Event not found"}'
            if last == "snapshot.jpg":
                one.shown.update(one.images[-1:])
                return (200, one.images[-1]) if one.images else (404, b'{"success":false}')
            if last == "sub_label":
                return self._write(one, json.loads(body))
            return 200, json.dumps(one.state()).encode()

    @staticmethod
    def _write(one: FrigateObject, given: dict[str, Any]) -> tuple[int, bytes]:
        label, score = given["subLabel"], given["subLabelScore"]
        if len(label) > MOST_LETTERS or not 0 < score <= 1:
            return 422, b'{"detail":"validation"}'
        one.sub_labels.append((label, score))
        return 200, b'{"success":true}'
