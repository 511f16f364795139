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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.servers import daemon, gateway
from calibration.papers.modi.files import File
from calibration.papers.modi.loading import CONDITIONS, Took, measured
from calibration.papers.modi.networks import PROFILES
from calibration.papers.tables import table
from jetsel.wire import Answer
from tests.link import THERE, Quality, link, there

PORT = 8005
SENT = {"Content-Type": "image/jpeg"}
HERE_ROUNDS = 3  # of the device, after each network
SEED = 2018
PAPER_MS = 200.0  # MODI's inference at the edge: what 66.7 % of transfer leave of 600 ms


@dataclass(frozen=True)
class Seen:
    """One request through a link: the whole, and what the server says of its own part."""

    sent_bytes: int
    total_ms: float
    server_ms: float

    @property
    def transfer_ms(self) -> float:
        """T_nw: the whole less what the server worked (MDInference, section IV-D)."""
        return self.total_ms - self.server_ms


@dataclass(frozen=True)
class Found:
    """What was seen through one network, and what files took on the device just afterwards."""

    seen: list[Seen]
    here: dict[File, Took]

    def median(self, part: str) -> float:
        """Return the median of an attribute of Seen."""
        return statistics.median(getattr(one, part) for one in self.seen)


def through_links(models: Path, model: str, shown: Sequence[Path], files: Sequence[File]) -> dict[str, Found]:
    """Ask the edge's model for each photograph through each network, over one connection, then each file here."""
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
                    seen = list(_asked(connection, model, shown))
                here = measured(files, shown, CONDITIONS[:1], HERE_ROUNDS)
                found[name] = Found(seen, {file: took for (file, _, _), took in here.items()})
            return found


def _asked(connection: http.client.HTTPConnection, model: str, shown: Sequence[Path]) -> Iterator[Seen]:
    for path in shown:
        data = path.read_bytes()
        began = time.perf_counter()
        connection.request("POST", f"/classify?model={model}", data, SENT)
        reply = connection.getresponse()
        content = reply.read()
        total_ms = (time.perf_counter() - began) * 1e3
        if reply.status != http.HTTPStatus.OK:
            raise SystemExit(f"the edge refused {path.name}: {content.decode()}")
        yield Seen(len(data), total_ms, msgspec.json.decode(content, type=Answer).stages_ms.total)


def figure_4(found: Mapping[str, Found], same: File) -> str:
    """Return a table by network, medians over the photographs. same: the edge's model, as the device has it."""
    chance = np.random.default_rng(SEED)
    rows = []
    for name, (network, _) in PROFILES.items():
        one = found[name]
        sizes = [seen.sent_bytes for seen in one.seen]
        ends = network.ends_ms(sizes, chance)
        varied = "-" if ends is None else f"{ends[0]:.0f} to {ends[1]:.0f}"
        transfer, total = one.median("transfer_ms"), one.median("total_ms")
        device = one.here[same].later_ms
        rows.append(
            f"{name} | {network.round_trip_ms:g}, {network.up_megabits_per_s:.2g} "
            f"| {statistics.median(map(network.transfer_ms, sizes)):.0f} | {varied} | {transfer:.0f} "
            f"| {one.median('server_ms'):.0f} | {total:.0f} | {100 * transfer / total:.0f} | {device:.0f} "
            f"| {total / device:.0f} | {transfer + PAPER_MS:.0f}, {100 * transfer / (transfer + PAPER_MS):.0f}"
        )
    columns = "network | ms, Mbit/s | transfer ms, simulated | its 5 to 95 % | transfer ms | inference ms | total ms"
    columns += " | transfer % | loaded here, ms | times that | with the paper's inference: ms, transfer %"
    kilobytes = statistics.median(seen.sent_bytes for seen in next(iter(found.values())).seen) / 1e3
    return table(f"Figure 4: photographs of {kilobytes:.0f} kB in the median", columns, rows)


def beside_devices(found: Mapping[str, Found], files: Sequence[File]) -> str:
    """Return a table by file: how many times as slow as here a device is that takes as long as the edge."""
    rows = []
    for file in files:
        ratios = [
            f"{one.median('total_ms') / one.here[file].later_ms:.0f}, "
            f"{one.median('total_ms') / one.here[file].first_ms:.1f}"
            for one in found.values()
        ]
        rows.append(f"{file.model}, {file.way} | {100 * file.right:.1f} | {' | '.join(ratios)}")
    columns = f"on the device | top-1 % | {' | '.join(found)}"
    return table("How many times as slow a device is on par with the edge: loaded, first request", columns, rows)
