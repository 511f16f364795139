"""Run a daemon on a private socket for the duration of a `with` block, without leaving files behind."""

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

SILENCE_S = 60.0  # longest time without a reply: a board may read Python and its libraries from a slow card
STOP_S = 15.0  # until it is killed; the daemon itself completes accepted requests for up to 10 s
CHECK_INTERVAL_S = 0.02


@contextmanager
def daemon(models: Path | None = None, calibrations: Path | None = None) -> Iterator[Client]:
    """Start a daemon with the built-in defaults, and yield a client for it when the daemon is ready.

    models: a folder of further models to serve. calibrations: the folder of calibrations to use, None for a new one.

    At the end of the block, also after SIGTERM or SIGHUP, the daemon is stopped and its temporary folder is removed.
    Raises InternalError with the end of the daemon's output if the daemon does not start.
    """
    old_handlers = {number: signal.signal(number, _exit_on_signal) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        with (
            tempfile.TemporaryDirectory(prefix="jetsel-") as folder,
            _started(Path(folder), models, calibrations) as client,
        ):
            yield client
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)


@contextmanager
def _started(folder: Path, models: Path | None, calibrations: Path | None) -> Iterator[Client]:
    """As `daemon`; folder: the temporary folder for the socket, the configuration and the log."""
    endpoint = f"ipc://{folder / 'jetsel.sock'}"
    config = folder / "jetsel.toml"
    # A first start fits the shipped calibration to this machine, which must not change the owner's folder.
    calibrations = calibrations or folder / "calibrations"
    lines = ["[server]", f'endpoint = "{endpoint}"', "[models]", f'calibrations = "{calibrations}"']
    lines += [] if models is None else [f'paths = ["{models.resolve()}"]']
    config.write_text("\n".join([*lines, ""]), encoding="utf-8")
    command = python_command("jetsel", "serve", "--config", str(config))
    log = folder / "log"
    with log.open("wb") as log_file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log_file, stderr=log_file)
    try:
        with Client(endpoint) as client:
            _wait_until_ready(client, process, log)
            yield client
    finally:
        _stop(process)


def _wait_until_ready(client: Client, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the daemon has loaded its models; raises InternalError if it ends or does not reply."""
    replied_s = time.monotonic()
    while process.poll() is None and time.monotonic() - replied_s < SILENCE_S:
        try:
            if client.status(timeout_ms=1000).state == "ready":
                return
            replied_s = time.monotonic()  # the daemon is loading, for which there is no limit
        except (NoDaemonError, NoReplyError):
            pass  # the socket does not exist yet
        time.sleep(CHECK_INTERVAL_S)
    status, lines = process.poll(), log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    fault = f"ended with status {status}" if status is not None else f"has not answered for {SILENCE_S:g} s"
    raise InternalError(f"the daemon did not start: it {fault}: {lines[-1] if lines else 'its log is empty'}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _exit_on_signal(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
