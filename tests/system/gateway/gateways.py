"""A real gateway, started as a process beside a daemon, what asks it over HTTP, and Debian's servers around it."""

import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JPEG = {"Content-Type": "image/jpeg"}
SECRET = "0123456789abcdef0123456789abcdef"


@dataclass
class Gateway:
    """A running `jetsel gateway`."""

    process: subprocess.Popen[str]
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, *, chunked: bool = False
    ) -> tuple[int, Any, dict[str, str]]:
        """Return status, body (JSON decoded) and headers, by lower-case name."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {}, encode_chunked=chunked)
            reply = connection.getresponse()
            found = reply.read()
            told = {name.lower(): value for name, value in reply.getheaders()}
            is_json = told.get("content-type") == "application/json"
            return reply.status, json.loads(found) if is_json else found, told
        finally:
            connection.close()


def launch(endpoint: str, *options: str, command: tuple[str, ...] = ("gateway",)) -> Gateway:
    """Start one on a port that is free; fails with its words unless it listens. command: another that serves HTTP."""
    listen = ["--endpoint", endpoint, "--listen", "127.0.0.1:0"]
    started = [sys.executable, "-m", "jetsel", *command, *listen, *options]
    process = subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    line = process.stdout.readline()
    assert line.startswith("http://127.0.0.1:"), line + process.stdout.read()
    return Gateway(process, int(line.rstrip("/\n").rpartition(":")[2]))


@contextlib.contextmanager
def opened(endpoint: str, *options: str, command: tuple[str, ...] = ("gateway",)) -> Iterator[Gateway]:
    """One that runs while the block lasts."""
    gateway = launch(endpoint, *options, command=command)
    with gateway.process as process:
        try:
            yield gateway
        finally:
            process.kill()


def token_file(folder: Path) -> Path:
    path = folder / "token"
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


DOCS = Path(__file__).parents[3] / "docs"


def blocks(page: str, section: str, language: str) -> list[str]:
    """The fenced blocks of a language in a section of a page, which ends at the next heading."""
    text = re.split(rf"^#+ {section}\n", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    text = re.split(r"^##", text, flags=re.MULTILINE)[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def adapted(text: str, changes: dict[str, str]) -> str:
    """The text with other paths, ports and secrets; each must be in it."""
    for was, now in changes.items():
        assert was in text, f"{was} is not in {text}"
        text = text.replace(was, now)
    return text


@contextmanager
def running(*command: object, folder: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server while the block lasts; what it says is in `said` in the folder."""
    words, nothing = [*map(str, command)], subprocess.DEVNULL
    with (
        (folder / "said").open("wb") as said,
        subprocess.Popen(
            words, cwd=folder, env={**os.environ, **environment}, stdin=nothing, stdout=said, stderr=said
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
