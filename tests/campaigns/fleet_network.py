"""The way from many devices to a repository: a web server that cuts, alters, replays and goes away as it is told."""

from __future__ import annotations

import random
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from jetsel.store import replace


class Network(ThreadingHTTPServer):
    """Serves a folder by GET with ranges, and takes PUT. faults: the share of replies that each kind of fault meets.

    Kinds: cut (at a random byte), altered (one bit of it), replayed (the oldest content that this name ever had).
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.draw = folder, random.Random(seed)
        self.faults: dict[str, float] = {}
        self.is_away = False
        self.first: dict[str, bytes] = {}
        self.done: Counter[str] = Counter()  # faults that were met, by kind
        self.sent_bytes: Counter[str] = Counter()  # by folder
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def spoiled(self, name: str, content: bytes) -> tuple[bytes, int]:
        """What is sent of a reply of these bytes, and how much before the connection is cut."""
        with self.lock:
            fault = next((kind for kind, share in self.faults.items() if self.draw.random() < share), None)
            self.first.setdefault(name, content)
            if fault is not None:
                self.done[fault] += 1
            if fault == "cut":
                return content, self.draw.randrange(len(content) + 1)
            if fault == "altered" and content:
                place = self.draw.randrange(len(content))
                content = content[:place] + bytes([content[place] ^ 1 << self.draw.randrange(8)]) + content[place + 1 :]
            elif fault == "replayed":
                content = self.first[name]
        return content, len(content)


class Handler(BaseHTTPRequestHandler):
    """Answers as Network says."""

    server: Network

    def do_GET(self) -> None:
        name = self.path.lstrip("/")
        path = self.server.folder / name
        if self.server.is_away:
            self.close_connection = True
            return
        if not path.is_file():
            self.send_error(404)
            return
        content, end = self.server.spoiled(name, path.read_bytes())
        asked = self.headers.get("Range")
        begin = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        if begin > len(content):
            self.send_error(416)
            return
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        sent = content[begin : max(begin, end)]
        self.wfile.write(sent)
        with self.server.lock:
            self.server.sent_bytes[name.split("/")[0]] += len(sent)

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.is_away:
            self.close_connection = True
            return
        path = self.server.folder / self.path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, content)
        _, end = self.server.spoiled("", b"\0")
        if end == 0:  # stored, and the device never hears of it
            self.close_connection = True
            return
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass
