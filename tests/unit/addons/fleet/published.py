"""A repository with a small family in it, its keys, and a web server before it that fails as it is told."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from jetsel.addons.fleet import publishing
from jetsel.addons.fleet.documents import Bundle
from jetsel.addons.fleet.publishing import files_of
from jetsel.addons.fleet.signing import make_key, read_key
from jetsel.addons.fleet.storage import Storage
from jetsel.zoo import scan
from tests.unit.daemon.families import calibrate, put_family


@dataclass(frozen=True)
class Pair:
    """A pair of keys in hexadecimal."""

    private: str
    public: str


def pair(folder: Path, name: str) -> Pair:
    public = make_key(folder / name)
    return Pair(read_key(folder / name), public)


def family_folder(folder: Path, *models: str) -> Path:
    """A family `pets` of these models with a calibration."""
    folder.mkdir()
    put_family(folder, "pets", *models)
    calibrate(folder, "pets")
    return folder


def publish(storage: Storage, folder: Path, *keys: Pair, trusted: tuple[Pair, ...] = ()) -> Bundle | None:
    family = scan([folder]).families["pets"]
    files, models = files_of(family, folder / "nothing")
    return publishing.publish(
        storage, "pets", models, files, [key.private for key in keys], [key.public for key in trusted]
    )


class Server(ThreadingHTTPServer):
    """Serves a folder with ranges. cuts_after: bytes of each blob's reply before the connection is cut, None: never."""

    cuts_after: int | None = None
    knows_ranges = True
    ranges: list[str]
    asked: list[str]


class Handler(SimpleHTTPRequestHandler):
    """Answers a GET, from the byte that was asked for on, and takes what is PUT."""

    server: Server

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        self.server.asked.append(self.path)
        if not path.is_file():
            self.send_error(404)
            return
        content, asked = path.read_bytes(), self.headers.get("Range")
        begin = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.server.knows_ranges else 0
        if asked:
            self.server.ranges.append(asked)
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        cut = self.server.cuts_after if "/blobs/" in self.path else None
        self.wfile.write(content[begin:][:cut])

    def do_PUT(self) -> None:
        path = Path(self.translate_path(self.path))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[tuple[Server, str]]:
    """Serve a folder for as long as a `with` lasts; give the server and its address."""
    server = Server(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    server.ranges, server.asked = [], []
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
