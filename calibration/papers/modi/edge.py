"""MODI's Figure 4 (section 4.3): a request to an edge server through networks, as transfer and inference.

Simulated by networks.py, and measured: our gateway and daemon in another network namespace, behind a link of the same
delay and bandwidth, without jitter or loss. It needs root.
"""

from __future__ import annotations

import contextlib
import http.client
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.link import THERE, Quality, link, there
from benchmarks.servers import daemon, gateway
from calibration.papers.modi.files import File
from calibration.papers.modi.networks import PROFILES
from calibration.papers.tables import table
from calibration.starter.calibrate import LIMITS
from jetsel.engines.onnx import OnnxEngine
from jetsel.image import decode, model_input
from jetsel.wire import Answer

PORT = 8005
SENT = {"Content-Type": "image/jpeg"}
SEED = 2018
PAPER_MS = 200.0  # MODI's inference at the edge: what 66.7 % of transfer leave of 600 ms


@dataclass(frozen=True)
class Seen:
    """One request through a link: the whole, what the server says of its own part, and what each file takes here."""

    sent_bytes: int
    total_ms: float
    server_ms: float
    here_ms: dict[File, float]

    @property
    def transfer_ms(self) -> float:
        """T_nw: the whole less what the server worked (MDInference, section IV-D)."""
        return self.total_ms - self.server_ms


Found = Mapping[str, Sequence[Seen]]
"""By network."""


def through_links(models: Path, model: str, shown: Sequence[Path], files: Sequence[File]) -> Found:
    """Ask the edge's model for each photograph through each network, over one connection, and each file here."""
    engines = {file: OnnxEngine(file.model, file.path, concurrency=1, threads=1) for file in files}
    with tempfile.TemporaryDirectory(prefix="jetsel-") as place, link(Quality()) as opened:
        folder = Path(place)
        settings = f'[models]\nstarter = false\npaths = ["{models.resolve()}"]\n[power]\nsensor = "none"\n'
        with (
            daemon(folder / "edge", settings) as server,
            gateway(folder, server, "--behind-proxy", within=there(()), listen=f"{THERE}:{PORT}"),
        ):
            found = {}
            for name, (network, _) in PROFILES.items():
                opened.become(Quality(network.round_trip_ms / 2, 0.0, 0.0, network.up_megabits_per_s))
                with contextlib.closing(http.client.HTTPConnection(THERE, PORT, timeout=120)) as connection:
                    found[name] = [_asked(connection, model, path, engines) for path in shown]
            return found


def _asked(
    connection: http.client.HTTPConnection, model: str, photograph: Path, engines: Mapping[File, OnnxEngine]
) -> Seen:
    data = photograph.read_bytes()
    began = time.perf_counter()
    connection.request("POST", f"/classify?model={model}", data, SENT)
    reply = connection.getresponse()
    content = reply.read()
    total_ms = (time.perf_counter() - began) * 1e3
    if reply.status != http.HTTPStatus.OK:
        raise SystemExit(f"the edge refused {photograph.name}: {content.decode()}")
    here_ms = {file: _here_ms(engine, file, data) for file, engine in engines.items()}
    return Seen(len(data), total_ms, msgspec.json.decode(content, type=Answer).stages_ms.total, here_ms)


def _here_ms(engine: OnnxEngine, file: File, data: bytes) -> float:
    began = time.perf_counter()
    engine.infer(model_input(decode(data, LIMITS, file.decode_px), file.spec))
    return (time.perf_counter() - began) * 1e3


def figure_4(found: Found, same: File) -> str:
    """Return a table by network, medians over the photographs. same: the edge's model, as the device has it."""
    chance = np.random.default_rng(SEED)
    rows = []
    for name, (network, _) in PROFILES.items():
        seen = found[name]
        sizes = [one.sent_bytes for one in seen]
        ends = network.ends_ms(sizes, chance)
        varied = "-" if ends is None else f"{ends[0]:.0f} to {ends[1]:.0f}"
        transfer = statistics.median(one.transfer_ms for one in seen)
        server = statistics.median(one.server_ms for one in seen)
        total = statistics.median(one.total_ms for one in seen)
        here = statistics.median(one.here_ms[same] for one in seen)
        rows.append(
            f"{name} | {network.round_trip_ms:g}, {network.up_megabits_per_s:.2g} "
            f"| {statistics.median(map(network.transfer_ms, sizes)):.0f} | {varied} | {transfer:.0f} | {server:.0f} "
            f"| {total:.0f} | {100 * transfer / total:.0f} | {here:.0f} "
            f"| {transfer + PAPER_MS:.0f}, {100 * transfer / (transfer + PAPER_MS):.0f}"
        )
    columns = "network | round trip ms, Mbit/s up | transfer ms, simulated | its 5 to 95 % | transfer ms | inference ms"
    columns += " | total ms | transfer % | the same here, ms | with the paper's inference: ms, transfer %"
    kilobytes = statistics.median(one.sent_bytes for one in next(iter(found.values()))) / 1e3
    return table(f"Figure 4: photographs of {kilobytes:.0f} kB in the median", columns, rows)


def beside_devices(found: Found, files: Sequence[File]) -> str:
    """Return a table by file that is loaded: how many times as slow as here a device takes as long as the edge."""
    rows = []
    for file in files:
        ratios = (statistics.median(one.total_ms / one.here_ms[file] for one in seen) for seen in found.values())
        cells = " | ".join(f"{ratio:.0f}" for ratio in ratios)
        rows.append(f"{file.model}, {file.way} | {100 * file.right:.1f} | {cells}")
    columns = f"loaded on the device | top-1 % | {' | '.join(found)}"
    return table("How many times as slow as here a device is that is on par with the edge", columns, rows)
