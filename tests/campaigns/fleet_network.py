"""The way from many devices to an object store: a proxy that cuts, alters, replays and goes away as it is told."""

import random
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import urllib3


class Network(ThreadingHTTPServer):
    """Passes GET and PUT on to an address. faults: the share of replies that each kind of fault meets.

    uploads: the content of each by its name. Kinds: cut (at a random byte), altered (one bit of it), replayed (the
    oldest content that this name ever had).
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, store: str, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.store, self.draw = store, random.Random(seed)
        self.pool = urllib3.PoolManager(maxsize=16)
        self.faults: dict[str, float] = {}
        self.is_away = False
        self.first: dict[str, bytes] = {}
        self.uploads: dict[str, bytes] = {}
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
        if self.server.is_away:
            self.close_connection = True
            return
        found = self.server.pool.request("GET", f"{self.server.store}/{name}")
        if found.status != 200:
            self.send_error(found.status)
            return
        content, end = self.server.spoiled(name, found.data)
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
        stored = self.server.pool.request("PUT", f"{self.server.store}{self.path}", body=content)
        self.server.uploads[self.path.lstrip("/")] = content
        _, end = self.server.spoiled("", b"\0")
        if end == 0:  # stored, and the device never hears of it
            self.close_connection = True
            return
        self.send_response(stored.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass
