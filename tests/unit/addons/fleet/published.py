"""Repositories with a small family, their keys, a web server that fails as it is told, and what devices tell."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import numpy as np

from jetsel.addons.fleet import publishing
from jetsel.addons.fleet.documents import Bundle
from jetsel.addons.fleet.publishing import files_of
from jetsel.addons.fleet.signing import make_key, read_key
from jetsel.addons.fleet.storage import Storage
from jetsel.addons.fleet.usage import DaemonUsage, DeviceLimits, FamilyUsage, ModelUsage, Usage, usage_path
from jetsel.artefact.calibration import ANSWERS, MeasuredEnergy
from jetsel.calibrate.record.recording import Recording
from jetsel.zoo import scan
from tests.unit.daemon.families import CLASSES, calibrate, put_family


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


SURE, UNSURE = 9.0, 1.0
SAID = {  # of five photographs of classes 0 to 4: the class, and how sure
    "small": ((0, SURE), (1, SURE), (5, UNSURE), (5, UNSURE), (4, SURE)),
    "large": ((0, SURE), (1, SURE), (2, SURE), (5, SURE), (5, SURE)),
}
"""Right are small on 3 of 5, large on 3, and small with large after it, where it is not sure, on 4 of 5."""

COSTS_MS = {"small": 1.0, "large": 10.0}  # so that of both in 3 * 1 + 2 * 11 over 5, which is 5 ms
ENERGIES_MJ = {"small": 2.0, "large": 20.0}  # 10 mJ likewise


def recording() -> Recording:
    logits = np.zeros((2, 5, CLASSES), np.float32)
    for model, said in enumerate(SAID.values()):
        for photograph, (label, sure) in enumerate(said):
            logits[model, photograph, label] = sure
    return Recording(tuple(SAID), logits, np.arange(5), np.zeros((5, 29), np.float32), COSTS_MS)


def repository(url: str, folder: Path, key: Pair) -> Storage:
    """Publish the family `pets`."""
    models = folder / "models"
    models.mkdir()
    put_family(models, "pets", *SAID)
    calibrate(models, "pets", costs_ms=COSTS_MS, energy=MeasuredEnergy(mean_mj=ENERGIES_MJ))
    (models / "calibration" / ANSWERS).write_bytes(recording().condense_answers(dict.fromkeys(SAID, 1.0)))
    storage = Storage(url)
    publishing.init(storage, [key.private])
    publish(storage, models, key)
    return storage


def told(device: str, sequence: int, answers: int = 0, **changes: Any) -> Usage:
    """A line of a device that answered this many requests in its minute, in time, by a daemon that began with it.

    changes: fields of the line or of its daemon.
    """
    models = tuple(
        ModelUsage(name=name, runs=answers, cost_ms=cost, energy_mj=ENERGIES_MJ[name])
        for name, cost in COSTS_MS.items()
    )
    family = FamilyUsage(name="pets", answers=answers, escalated=0, by_model={}, by_policy={}, models=models)
    fields: dict[str, Any] = {
        "device": device,
        "series": "s",
        "sequence": sequence,
        "at_s": 60.0 * sequence,
        "plan": 0,
        "limits": DeviceLimits(storage_mb=100.0),
    } | {name: changes.pop(name) for name in list(changes) if name in Usage.__struct_fields__}
    daemon: dict[str, Any] = {
        "instance": str(sequence),
        "requests": {"ok": answers},
        "families": (family,),
    }
    return Usage(daemon=DaemonUsage(**daemon | changes), **fields)


def upload(storage: Storage, *lines: Usage) -> None:
    """As a device does it."""
    storage.write(usage_path(lines[0]), gzip.compress(b"".join(msgspec.json.encode(line) + b"\n" for line in lines)))
