"""Processes that the benchmarks start and stop: a real daemon with a configuration of its own, and its rivals."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import zmq

from benchmarks.channels import HttpChannel
from jetsel.client import Client
from jetsel.daemon.first_start import LIMIT_S
from jetsel.wire import PROTOCOL_VERSION, Status, encode
from jetsel.zoo import STARTER
from tests.waiting import until

ROOT = Path(__file__).parents[1]
START_S = 60.0
FITTED_S = LIMIT_S  # it is timed again and fitted, which takes minutes on a busy machine
STOP_S = 20.0
LOOK_EVERY_S = 0.005


@dataclass(frozen=True)
class Server:
    """A server that answers. pids: of all its processes."""

    address: str
    pids: list[int]
    ready_after_s: float  # from the start of the process


@contextmanager
def daemon(
    folder: Path, settings: str = "", python: str = sys.executable, command: Sequence[str] = ("-m", "jetsel")
) -> Iterator[Server]:
    """Run `jetsel serve` on a socket in `folder`; settings: lines for its [server] section and what follows it.

    python: the interpreter of the environment whose jetsel it is, this one's by default. command: what runs jetsel.
    """
    folder.mkdir(exist_ok=True)
    endpoint = f"ipc://{folder / 'jetsel.sock'}"
    config = folder / "jetsel.toml"
    config.write_text(f'[server]\nendpoint = "{endpoint}"\n{settings}', encoding="utf-8")
    began_s = time.perf_counter()
    served = [python, *command, "serve", "--config", str(config)]
    with _process(served, folder / "jetsel.log", place=folder) as process:
        while not _is_ready(endpoint):
            _check(process, folder / "jetsel.log", began_s)
        yield Server(endpoint, [process.pid], time.perf_counter() - began_s)


@contextmanager
def fitted_daemon(folder: Path, models: Path, settings: str = "", like: Path | None = None) -> Iterator[Server]:
    """Run `jetsel serve` with one family, whose shipped calibration has been fitted to this machine's times.

    settings: more sections. like: the folder of another one whose calibration is used.
    """
    own = "" if models == STARTER else f'starter = false\npaths = ["{models.resolve()}"]\n'
    calibrations = (like or folder) / "calibrations"
    with daemon(folder, f'[models]\n{own}calibrations = "{calibrations}"\n{settings}') as server:
        if own:
            with Client(server.address) as client:
                until(lambda: str(client.status().families[0].calibration).startswith("number"), FITTED_S)
        yield server


@contextmanager
def gateway(
    folder: Path, served: Server, *options: str, within: Sequence[str] = (), listen: str = "127.0.0.1:0"
) -> Iterator[Server]:
    """Run `jetsel gateway` before a daemon; its pids are both processes. within: a command that runs commands."""
    log = folder / "gateway.log"
    began_s = time.perf_counter()
    command = [sys.executable, "-u", "-m", "jetsel", "gateway", "--endpoint", served.address, "--listen", listen]
    with _process([*within, *command, *options], log) as process:
        while not log.read_text("utf-8").startswith("http://"):  # it says where it listens
            _check(process, log, began_s)
        address = log.read_text("utf-8").splitlines()[0]
        yield Server(address, [*served.pids, process.pid], time.perf_counter() - began_s)


def has_mosec() -> bool:
    """Whether mosec is installed."""
    return importlib.util.find_spec("mosec") is not None


@contextmanager
def mosec(
    folder: Path, model: str, workers: int, photograph: bytes, *options: str, models: Path = STARTER
) -> Iterator[Server]:
    """Run mosec with this model in so many worker processes, batching off, on a TCP port of the loopback.

    options: of mosec's command line. models: the folder with the model's family.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    where = ["--address", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    log = folder / f"mosec-{model}.log"
    address = f"http://127.0.0.1:{port}/inference"
    settings = {"BENCHMARKS_MODEL": model, "BENCHMARKS_MODELS": str(models.resolve())}
    settings["BENCHMARKS_WORKERS"] = str(workers)
    began_s = time.perf_counter()
    with _process([sys.executable, "-m", "benchmarks.mosec_server", *where, *options], log, settings) as process:
        while not _answers(address, photograph):
            _check(process, log, began_s)
        yield Server(address, _family_of(process.pid), time.perf_counter() - began_s)


@contextmanager
def naive(folder: Path, model: str) -> Iterator[Server]:
    """Run the least that could answer over ZeroMQ, with this model."""
    endpoint = f"ipc://{folder / 'naive.sock'}"
    began_s = time.perf_counter()
    log = folder / "naive.log"
    with _process([sys.executable, "-m", "benchmarks.naive_server", endpoint, model], log) as process:
        while not (folder / "naive.sock").exists():  # it is bound once the model is warm
            _check(process, log, began_s)
        yield Server(endpoint, [process.pid], time.perf_counter() - began_s)
    (folder / "naive.sock").unlink(missing_ok=True)


@contextmanager
def _process(
    command: list[str], log: Path, settings: Mapping[str, str] | None = None, place: Path = ROOT
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process in a group of its own, which ends with the block; place: its working directory."""
    environment = {**os.environ, **(settings or {})}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode: so do the servers
    with log.open("wb") as words:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            cwd=place,
            env=environment,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # whatever it started and left behind


def _is_ready(endpoint: str) -> bool:
    """Whether the daemon reports so; only this field is read, as another version's status may have other fields."""
    if not Path(endpoint.removeprefix("ipc://")).exists():
        return False
    with zmq.Context.instance().socket(zmq.REQ) as asking:
        asking.setsockopt(zmq.LINGER, 0)
        asking.connect(endpoint)
        asking.send(encode(Status(PROTOCOL_VERSION, "ready")))
        return bool(asking.poll(1000)) and json.loads(asking.recv()).get("state") == "ready"


def _answers(address: str, photograph: bytes) -> bool:
    """Whether the HTTP server classifies; while its workers start it refuses or lets the request time out."""
    try:
        channel = HttpChannel(address, [photograph])
    except OSError:
        return False
    try:
        channel.send(0)
        while not channel.receive():
            pass
    except (OSError, RuntimeError):
        return False
    finally:
        channel.close()
    return True


def _check(process: subprocess.Popen[bytes], log: Path, began_s: float) -> None:
    """Wait a moment; raises RuntimeError with the server's own words where it ended or takes too long."""
    if process.poll() is not None or time.perf_counter() - began_s > START_S:
        raise RuntimeError(f"{process.args!r} did not come up: {log.read_text(encoding='utf-8', errors='replace')}")
    time.sleep(LOOK_EVERY_S)


def _family_of(pid: int) -> list[int]:
    """Return the process and all that descend from it (proc(5), task/<tid>/children)."""
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            found += map(int, children.read_text(encoding="ascii").split())
    return found
