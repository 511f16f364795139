"""A daemon on a socket of its own for as long as a `with` lasts, of which nothing is left behind."""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from jetsel.base.errors import InternalError, NoDaemonError, NoReplyError
from jetsel.base.process import python_command
from jetsel.client import Client

SILENCE_S = 60.0  # before its first word: a board reads Python and its libraries from a slow card for the first time
STOP_S = 15.0  # the daemon itself gives accepted requests 10 s
LOOK_EVERY_S = 0.02


@contextmanager
def daemon(models: Path | None = None, calibrations: Path | None = None) -> Iterator[Client]:
    """Start a daemon with the built-in defaults, and give a client of it once it is ready.

    models: a folder of models that it serves beside those that it finds by itself. calibrations: the folder of those
    that it uses, None for a new one.

    It is stopped, and its folder removed, with the calibrations that it makes, however the block is left: SIGTERM and
    SIGHUP included.
    Raises InternalError with the daemon's last words if it does not come up.
    """
    before = {number: signal.signal(number, _leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        with (
            tempfile.TemporaryDirectory(prefix="jetsel-") as folder,
            _started(Path(folder), models, calibrations) as client,
        ):
            yield client
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _started(folder: Path, models: Path | None, calibrations: Path | None) -> Iterator[Client]:
    endpoint = f"ipc://{folder / 'jetsel.sock'}"
    config = folder / "jetsel.toml"
    # A first start fits the shipped calibration to this machine's times: that is not left in the owner's folder.
    calibrations = calibrations or folder / "calibrations"
    lines = ["[server]", f'endpoint = "{endpoint}"', "[models]", f'calibrations = "{calibrations}"']
    lines += [] if models is None else [f'paths = ["{models.resolve()}"]']
    config.write_text("\n".join([*lines, ""]), encoding="utf-8")
    command = python_command("jetsel", "serve", "--config", str(config))
    log = folder / "log"
    with log.open("wb") as words:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=words, stderr=words)
    try:
        with Client(endpoint) as client:
            _wait_until_ready(client, process, log)
            yield client
    finally:
        _stop(process)


def _wait_until_ready(client: Client, process: subprocess.Popen[bytes], log: Path) -> None:
    answered_s = time.monotonic()
    while process.poll() is None and time.monotonic() - answered_s < SILENCE_S:
        try:
            if client.status(timeout_ms=1000).state == "ready":
                return
            answered_s = time.monotonic()  # it loads: that takes what it takes
        except (NoDaemonError, NoReplyError):
            pass  # its socket is not there yet
        time.sleep(LOOK_EVERY_S)
    status, lines = process.poll(), log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    what = f"ended with status {status}" if status is not None else f"has not answered for {SILENCE_S:g} s"
    raise InternalError(f"the daemon did not start: it {what}: {lines[-1] if lines else 'its log is empty'}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
