"""Whether the service is as it should be: what systemd thinks of its units, and whether the daemon answers."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from jetsel.cli.service.doing import ServiceError, run
from jetsel.cli.service.units import NEWER_THAN_237, File
from jetsel.endpoint import SYSTEM_SOCKET, user_socket
from jetsel.errors import JetselError

STATUS_MS = 30_000.0
_UNKNOWN = re.compile(r"Unknown (?:lvalue|key name) '(\w+)'")
_EXPOSURE = re.compile(r"Overall exposure level for \S+: ([\d.]+)")


def verify(files: Sequence[File], *, user: bool) -> str:
    """Have systemd read the units before they are put in place, and return what came of it, in a line.

    Raises ServiceError with what it objects to. It exits with 0 all the same, so its words are read; that an older one
    does not know the directives that are newer than 237 is no objection.
    """
    units = [file for file in files if file.path.suffix in (".service", ".socket", ".timer")]
    with tempfile.TemporaryDirectory(prefix="jetsel-units-") as folder:
        for unit in units:
            (Path(folder) / unit.path.name).write_text(unit.text, encoding="utf-8")
        names = [f"{folder}/{unit.path.name.replace('@.', '@check.')}" for unit in units]
        ended = run(["systemd-analyze", *(["--user"] if user else []), "verify", *names], 60.0)
    said = [line for line in ended.err.splitlines() if "jetsel" in line]
    unknown = {match[1] for line in said if (match := _UNKNOWN.search(line))} & NEWER_THAN_237
    wrong = [line for line in said if not ((match := _UNKNOWN.search(line)) and match[1] in unknown)]
    if wrong:
        raise ServiceError(f"systemd objects to the units, and nothing was changed: {'; '.join(wrong)}")
    if ended.status is None or (ended.status != 0 and not said):
        return f"the units were not verified: {' '.join(ended.err.split())}"
    older = f"; this systemd is too old for {', '.join(sorted(unknown))}, and goes on without" if unknown else ""
    return f"systemd verifies the units{older}"


def exposure() -> str:
    """Return how far the sandbox goes, as systemd counts it; 240 and later do."""
    ended = run(["systemd-analyze", "security", "--no-pager", "jetsel.service"], 60.0)
    match = _EXPOSURE.search(ended.out)
    if match is None:
        return "how exposed the service is, is not known: `systemd-analyze security` came with systemd 240"
    return f"exposure of jetsel.service: {match[1]} of 10 (0 is closed; docs/deploy.md says what each point is for)"


def works(*, user: bool) -> Iterator[str]:
    """Yield what was found of the running service, line by line; raises ServiceError where it does not serve."""
    from jetsel.client import Client

    systemctl = ["systemctl", *(["--user"] if user else [])]
    journal = "journalctl --user -u jetsel" if user else "journalctl -u jetsel"
    for unit in ("jetsel.socket", "jetsel.service"):
        state = run([*systemctl, "is-active", unit], 30.0).out.strip()
        if state != "active":
            raise ServiceError(f"{unit} is {state or 'unknown'}: see why: {journal} -n 50")
        yield f"{unit} is active"
    endpoint = f"ipc://{user_socket() if user else SYSTEM_SOCKET}"
    try:
        with Client(endpoint, timeout_ms=STATUS_MS) as client:
            reply = client.status()
    except JetselError as fault:
        raise ServiceError(f"the daemon does not answer at {endpoint}: {fault}; see: {journal} -n 50") from None
    models = sum(model.state == "ready" for family in reply.families for model in family.models)
    yield f"the daemon answers at {endpoint}: it is {reply.state}, with {models} models"
