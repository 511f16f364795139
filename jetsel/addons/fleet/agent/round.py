"""One round of the agent on one page, from the plan to the usage report, top to bottom."""

from __future__ import annotations

import gzip
import os
import socket
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import structs

from jetsel.addons.fleet.agent import remembered
from jetsel.addons.fleet.agent.canary import Canary
from jetsel.addons.fleet.agent.following import Follower
from jetsel.addons.fleet.agent.installing import Installer
from jetsel.addons.fleet.agent.reporting import report, reported_times
from jetsel.addons.fleet.config import Fleet
from jetsel.addons.fleet.signing import read_key
from jetsel.addons.fleet.sources import Repository, repository_of
from jetsel.addons.fleet.usage import Usage, usage_path
from jetsel.base.config import Config
from jetsel.base.endpoint import VARIABLE
from jetsel.base.errors import ConfigError, JetselError, RepositoryError
from jetsel.base.files import locked, read_secret, repair_of, replace
from jetsel.base.names import is_plain
from jetsel.base.state import agent_folder
from jetsel.client import Client


@dataclass(frozen=True)
class RoundResult:
    """Result of a round: its line, the number of lines sent, and why not all were sent, None if they were."""

    line: Usage
    sent: int
    unsent: str | None


def run_round(config: Config, fleet: Fleet, config_file: Path | None) -> RoundResult:
    """Follow the plan, report the device's state, and send what waits; a concurrent round waits for this one.

    Raises ConfigError, and RepositoryError if the agent's folder cannot be read or written.
    """
    if fleet.url is None:
        raise ConfigError('fleet.url: name the repository, as in [fleet] then url = "https://models.example/fleet"')
    if not fleet.keys:
        raise ConfigError('fleet.keys: set the trusted public keys, as in keys = ["/etc/jetsel/fleet.key.pub"]')
    device = fleet.device or socket.gethostname().lower()
    if not is_plain(device):
        raise ConfigError(
            f'fleet.device: the host name {device!r} is not a valid device name: set one, as in device = "line-3"'
        )
    token = None if fleet.token_file is None else read_secret(Path(fleet.token_file), "fleet.token_file:").strip()
    folder = agent_folder()
    follower = Follower(
        device,
        repository_of(fleet.url, token),
        [read_key(Path(key)) for key in fleet.keys],
        Installer(folder, config, fleet, config_file),
        None if fleet.canary is None else Canary(Path(fleet.canary), fleet.memory_mb, fleet.deadline_ms),
        lambda: Client(None if os.environ.get(VARIABLE) else config.server.endpoint),
        folder / "remembered.json",
    )
    sink = repository_of(fleet.upload or fleet.url, token)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            line = _follow_and_report(follower)
            spool = Spool(folder / "usage.jsonl", int(fleet.spool_mb * 1e6))
            if dropped := spool.add(line):
                memory = remembered.read(follower.memory)
                remembered.write(follower.memory, structs.replace(memory, dropped=memory.dropped + dropped))
            try:
                return RoundResult(line, spool.send(sink), None)
            except RepositoryError as fault:
                return RoundResult(line, 0, str(fault))
    except OSError as fault:
        raise RepositoryError(f"{folder}: cannot be used ({fault.strerror}): {repair_of(fault)}") from fault


def _follow_and_report(follower: Follower) -> Usage:
    """Follow the plan and save what to remember; return the line that reports it."""
    memory = follower.follow(remembered.read(follower.memory))
    status, why = None, None
    try:
        with follower.client() as client:
            status = client.status()
    except JetselError as fault:
        why = str(fault)
    canary = follower.canary is not None and follower.canary.has_asked
    line = report(follower.device, follower.installer, memory, status, why, canary=canary)
    times = memory.times if status is None else reported_times(status)
    remembered.write(follower.memory, structs.replace(memory, sequence=line.sequence, times=times))
    return line


MOST_LINES = 500  # of one upload


class Spool:
    """A file of JSON lines, the oldest first, of a limited size in bytes."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path, self._most_bytes = path, most_bytes

    def add(self, line: Usage) -> int:
        """Append a line; return how many damaged or old lines were dropped. Raises RepositoryError."""
        earlier_lines = self._lines()
        lines = [*filter(_is_decodable, earlier_lines), msgspec.json.encode(line)]
        before = len(earlier_lines) + 1
        while sum(map(len, lines)) + len(lines) > self._most_bytes and len(lines) > 1:
            del lines[0]
        self._write(lines)
        return before - len(lines)

    def send(self, sink: Repository) -> int:
        """Send all lines, each upload named by its first line; return their number. Raises RepositoryError.

        Lines that were sent but not yet removed are sent again under the same name, so that they count once.
        """
        lines, sent = self._lines(), 0
        while lines:
            batch = lines[:MOST_LINES]
            name = usage_path(msgspec.json.decode(batch[0], type=Usage))
            sink.put(name, gzip.compress(b"\n".join(batch) + b"\n", mtime=0))
            lines, sent = lines[len(batch) :], sent + len(batch)
            self._write(lines)
        return sent

    def _lines(self) -> list[bytes]:
        try:
            return self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return []

    def _write(self, lines: list[bytes]) -> None:
        try:
            replace(self._path, b"".join(line + b"\n" for line in lines))
        except OSError as fault:
            raise RepositoryError(f"{self._path}: not written ({fault.strerror}): {repair_of(fault)}") from fault


def _is_decodable(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=Usage)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True
