"""The benchmarks run end to end with tiny numbers, and what they measure with is right. No speed is asserted."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchmarks.__main__ import NO_MOSEC
from benchmarks.agreement import differing, through_the_socket, verdict, without_a_daemon
from benchmarks.channels import HttpChannel
from benchmarks.load import closed_loop
from benchmarks.photographs import photographs
from benchmarks.servers import has_mosec
from benchmarks.window import CpuClock, Window
from tests.system.daemons import drawn, encoded

ROOT = Path(__file__).parents[2]


def printed(*command: str) -> str:
    """What a benchmark prints; it must succeed."""
    ended = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def rows(markdown: str) -> dict[str, list[str]]:
    """The rows of all tables, by their first column."""
    lines = [line.strip("| ").split(" | ") for line in markdown.splitlines() if line.startswith("| ")]
    return {name: values for name, *values in lines}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three photographs, drawn."""
    for seed in range(3):
        (tmp_path / f"{seed}.jpg").write_bytes(encoded(drawn(seed, 375, 500)))
    return tmp_path


def test_one_command_measures_every_side() -> None:
    text = printed("benchmarks", "--models", "xs", "--requests", "12", "--rounds", "1", "--clients", "1,3")
    found = rows(text)
    servers = ["daemon", "naive", "mosec"] if has_mosec() else ["daemon", "naive"]
    measured = [f"{server}, {clients}" for server in servers for clients in ("1 client", "3 clients")]
    for name in measured:
        assert all(float(value) > 0 for value in found[name]), name
        assert f"{name}: CPU a request / the bare loop's" in found
    for name in ("bare, 1 thread", "bare, 2 threads"):
        assert all(float(value) > 0 for value in found[name][:-1]), name
    assert f"{measured[1]}: requests/s / the bare loop's on 2 threads" in found
    assert (NO_MOSEC in text) is not has_mosec()
    assert "scikit-image" in text


def test_an_unknown_model_is_refused_with_those_there_are() -> None:
    command = [sys.executable, "-m", "benchmarks", "--models", "xs,huge"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "no model huge; there are xs" in ended.stderr


def test_start_tells_times_and_memory(folder: Path) -> None:
    found = rows(printed("benchmarks.start", "--starts", "1", "--requests", "2", "--photos", str(folder)))
    values = {name: float(figures[-1]) for name, figures in found.items() if name != "what"}
    assert values["ready, median of the starts, s"] > 0
    resident = values["resident when ready and idle (VmRSS), MB"]
    assert 20 < resident <= values["most it ever held (VmHWM), MB"]


def test_a_polite_client_is_answered_in_a_flood(folder: Path) -> None:
    found = rows(printed("benchmarks.flood", "--peers", "4", "--seconds", "0.5", "--photos", str(folder)))
    for column in (0, 1):
        assert int(found["requests that the peers' sockets took"][column]) > 0
        assert int(found["polite client in the flood: answered"][column]) > 0
        assert found["polite client in the flood: given up"][column] == "none"
        peak, idle = (float(found[name][column]) for name in ("**most resident (VmHWM), MB**", "resident before, MB"))
        assert peak >= idle
    assert "16 MB each" in found["what"][1]


def test_the_daemon_agrees_with_its_parts_on_good_and_bad_files(folder: Path) -> None:
    (folder / "broken.jpg").write_bytes(encoded(drawn())[:500])
    assert "\n4 files, 0 different: 0.00%" in printed("benchmarks.agreement", str(folder))


def test_disagreement_is_listed_and_fails(folder: Path) -> None:
    paths = sorted(folder.iterdir())
    lines = differing(paths, through_the_socket(paths, "single:xs"), without_a_daemon(paths, "single:s"))
    assert len(lines) == 3
    assert "1.jpg" in lines[1]
    assert " by xs; " in lines[1]
    assert lines[1].endswith(" by s")
    text, status = verdict(len(paths), lines)
    assert status == 1
    assert lines[0] in text
    assert verdict(1000, lines[:1])[1] == 0, "0.1 % is allowed"


class _Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(500 if body == b"bad" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for half in (body[: len(body) // 2], body[len(body) // 2 :]):
            self.wfile.write(half)
            self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        pass


@pytest.fixture
def http_url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/inference"
        server.shutdown()


def test_the_generator_waits_for_whole_answers_and_reports_refusals(http_url: str) -> None:
    files = [b"x" * 200_000, b"y" * 5]
    channels = [HttpChannel(http_url, files) for _ in range(2)]
    assert len(closed_loop(channels, 7)) == 7
    refused = HttpChannel(http_url, [b"bad"])
    with pytest.raises(RuntimeError, match="500"):
        closed_loop([refused], 1)
    for channel in (*channels, refused):
        channel.close()


def test_the_clock_of_another_process_counts_what_getrusage_counts() -> None:
    before_s = time.process_time()
    clock_s = CpuClock([os.getpid()]).read_s()
    assert before_s <= clock_s <= time.process_time()
    with pytest.raises(OSError):
        CpuClock([2**22 + 1])  # past the largest process id there can be


def test_a_window_shares_out_what_was_used() -> None:
    window = Window([1.0, 2.0, 3.0, 4.0], wall_s=2.0, server_cpu_s=0.008, generator_cpu_s=0.002)
    assert (window.p50_ms, window.requests_per_s, window.server_cpu_ms, window.generator_cpu_ms) == (2.5, 2, 2, 0.5)


def test_photographs_of_scikit_image_have_the_size_that_is_said() -> None:
    import cv2
    import numpy as np

    found = photographs(None)
    assert len(found.files) >= 3
    assert {cv2.imdecode(np.frombuffer(data, np.uint8), 1).shape for data in found.files} == {(375, 500, 3)}


def test_the_engine_host_is_measured_beside_a_run_in_process() -> None:
    text = printed("benchmarks.hosted", "--runs", "20", "--requests", "50", "--kills", "1")
    found = rows(text)
    for side in ("in process", "hosted", "a ping"):
        assert all(float(value) > 0 for value in found[side]), side
    added = [float(value) for value in found["added by hosting"]]
    sides = zip(found["hosted"], found["in process"], strict=True)
    assert added == pytest.approx([float(hosted) - float(plain) for hosted, plain in sides], abs=0.002)
    for process in ("daemon's side", "host"):
        assert float(found[process][0]) > 10, "megabytes"
    assert "From kill -9 under 8 clients to the first good answer, 1 kills" in text


def test_energies_are_computed_beside_the_truth() -> None:
    text = printed("benchmarks.energy", "--parts", "computed", "--runs", "1")
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| constant, 300 ms")]
    assert len(lines) == 5, "three rates of one chip, one rate of two more"
    fastest = lines[2]  # an unchanging power of 8 W that the chip rounds to the nearest step, 0.152 W
    assert float(fastest[3].removesuffix(" %")) == pytest.approx(0, abs=100 * 0.152 / 5)
    assert fastest[-3:] == ["100 %", "0", "0"]
    assert "Over 10 % and not said, in all:" in text


def test_the_sampler_s_cost_is_measured_beside_the_least_that_any_process_must_do() -> None:
    found = rows(printed("benchmarks.sampler", "--seconds", "1", "--rounds", "1"))
    measured = [values[-1] for name, values in found.items() if name not in ("what", "---")]
    assert len(measured) == 5
    assert all(float(share.removesuffix(" %")) > 0 for share in measured)
