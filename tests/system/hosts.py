"""Engine hosts that misbehave: the real host with one thing changed, started by a script like an interpreter."""

import sys
from pathlib import Path

from tests.processes import children_with
from tests.system.daemons import Daemon

CHANGED = """#!{python}
# Called as an interpreter is: -I host --backend B --fd N.
import json, os, signal, struct, sys, time
sys.path.insert(0, os.path.dirname(sys.argv[2]))
from host import onnx_runtime, serving
del sys.path[0]
{change}
sys.exit(serving.main(sys.argv[3:]))
"""

NEVER_HELLO = "time.sleep(600)"

SILENT_PING = """
class Silent(serving.Host):
    def _answer(self, request):
        if request["do"] == "ping":
            time.sleep(600)
        return super()._answer(request)
serving.Host = Silent
"""

# What one answer to infer is replaced by; {body} sends it.
ON_INFER = """
class Changed(serving.Host):
    def _answer(self, request):
        if request["do"] != "infer" or os.path.exists({once!r}):
            return super()._answer(request)
        open({once!r}, "w").close()
        send = self._channel._socket.sendall
        reply = lambda **found: (lambda body: struct.pack("!I", len(body)) + body)(json.dumps(found).encode())
        {body}
serving.Host = Changed
"""

BODIES = {
    "half a message and the end": 'send(reply(id=request["id"], ok=True)[:7]); os._exit(0)',
    "garbage": 'send(b"\\0\\0\\0\\5hello")',
    "a message without end": 'send(b"\\xff\\xff\\xff\\xff" + 100 * b"x")',
    "another request's answer": 'send(reply(id=request["id"] + 1, ok=True))',
    "no reply": 'send(reply(id=request["id"], maybe=True))',
    "a poisoned device": 'send(reply(id=request["id"], ok=False, code="poisoned", message="an illegal address"))',
}

# Every run takes as many seconds as a file says.
SLOW = """
run = onnx_runtime.OnnxModel.run
def slow(self, batch):
    time.sleep(float(open({seconds!r}).read()))
    return run(self, batch)
onnx_runtime.OnnxModel.run = slow
"""

DIES_LOADING = """
class Dying(serving.Host):
    def _load(self, request):
        if request["name"] == {name!r} and os.path.exists({when!r}):
            os.kill(os.getpid(), signal.SIGKILL)
        return super()._load(request)
serving.Host = Dying
"""


def interpreter(folder: Path, change: str, name: str = "python-changed") -> str:
    """Write the script and return its path."""
    path = folder / name
    path.write_text(CHANGED.format(python=sys.executable, change=change))
    path.chmod(0o755)
    return str(path)


def interpreter_after(folder: Path, line: str) -> Path:
    """Write an interpreter that first does what this line of shell says, and return its path."""
    python = folder / "python-after"
    python.write_text(f'#!/bin/sh\n{line}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return python


def hosts_of(daemon: Daemon) -> list[int]:
    """The process numbers of the daemon's engine hosts: one, or for a moment none."""
    return children_with(daemon.process.pid, "/engines/host")


def host_of(daemon: Daemon) -> int:
    (host,) = hosts_of(daemon)
    return host
