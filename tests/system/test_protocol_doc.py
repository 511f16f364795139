"""docs/protocol.md against the code: its tables name every field, and its clients work as they are printed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
import pytest
import zmq

from jetsel import wire
from jetsel.base.config import Server
from jetsel.wire.power import BudgetStatus
from jetsel.wire.status import Histogram, ModelStatus, Percentiles
from tests.system.daemons import Daemon, drawn, encoded

EXAMPLE = Path(__file__).parents[2] / "examples" / "client.c"
PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"
TEXT = PROTOCOL.read_text(encoding="utf-8")

TABLES: dict[str, type[msgspec.Struct]] = {
    "### `classify`": wire.Classify,
    "### `answer`": wire.Answer,
    "### `failure`": wire.Failure,
    "### `status` (the reply)": wire.StatusReply,
    "### `reloaded`": wire.Reloaded,
}
OF_EVERY_MESSAGE = frozenset({"v", "id"})
ELSEWHERE = frozenset(
    {BudgetStatus, Histogram, ModelStatus, Percentiles}
)  # described once, though several fields hold them


def table(heading: str) -> dict[str, list[str]]:
    """The first table below a heading: its other cells by the field that a row begins with."""
    section = TEXT.split(f"\n{heading}\n")[1]
    lines = iter(section.splitlines())
    assert next(line for line in lines if line.startswith("|")).startswith("| field |")
    rows = {}
    for line in lines:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[name.strip("`")] = cells
    del rows["---"]
    return rows


def fields(kind: type[msgspec.Struct], prefix: str = "") -> dict[str, msgspec.structs.FieldInfo]:
    """The fields of a message and of what is in it, by their paths; of what is described once, the first."""
    found: dict[str, msgspec.structs.FieldInfo] = {}
    seen: set[object] = {BudgetStatus} if kind is wire.Answer else set()

    def walk(kind: type[msgspec.Struct], prefix: str) -> None:
        for field in msgspec.structs.fields(kind):
            if not prefix and field.name in OF_EVERY_MESSAGE:
                continue
            found[prefix + field.name] = field
            for inner in (field.type, *get_args(field.type)):
                is_list = get_origin(inner) is list or get_origin(field.type) is list
                for held in (inner, *get_args(inner)):
                    if isinstance(held, type) and issubclass(held, msgspec.Struct) and held not in seen:
                        seen.update(ELSEWHERE & {held})
                        walk(held, f"{prefix}{field.name}{'[]' if is_list else ''}.")
                        break

    walk(kind, "")
    return found


@pytest.mark.parametrize("heading", TABLES)
def test_a_table_names_every_field_and_says_null_where_it_may_be_null(heading: str) -> None:
    rows, known = table(heading), fields(TABLES[heading])
    assert set(rows) == set(known)
    for name, field in known.items():
        assert ("or null" in rows[name][0]) == (type(None) in get_args(field.type)), name


def test_every_message_has_its_table() -> None:
    kinds = set(get_args(wire.Request)) | set(get_args(wire.Reply))
    assert set(TABLES.values()) == kinds - {wire.Status, wire.Reload}
    assert fields(wire.Status) == fields(wire.Reload) == {}


def test_a_default_is_what_is_taken_where_the_field_is_left_out() -> None:
    rows = table("### `classify`")
    for name, field in fields(wire.Classify).items():
        default = "required" if field.default is msgspec.NODEFAULT else f"`{json.dumps(field.default)}`"
        assert rows[name][1] == default, name


def test_the_limits_are_those_of_the_code() -> None:
    limits = TEXT.split("\n## Limits\n")[1].split("\n## ")[0]
    server = Server()
    for said in (
        f"| frame one | {wire.MAX_JSON_BYTES:,} bytes |",
        f"`[server] max_image_mb`, {server.max_image_mb:g} MB",
        f"`[server] max_image_megapixels`, {server.max_image_megapixels:g} million",
        f"`[server] queue_requests`, {server.queue_requests} |",
        f"`[server] queue_mb`, {server.queue_mb:g} MB |",
    ):
        assert said in limits


def program() -> str:
    """The one program of the document."""
    (found,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(found.splitlines()) < 30
    return str(found)


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "drawn.jpg"
    path.write_bytes(encoded(drawn()))
    return path


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120, check=False)


def test_the_python_client_works(shared_daemon: Daemon, picture: Path, tmp_path: Path) -> None:
    client = tmp_path / "client.py"
    client.write_text(program())
    assert "jetsel" not in client.read_text().replace("jetsel.sock", "")
    done = run(sys.executable, client, shared_daemon.endpoint, picture)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 3
    assert re.fullmatch(r"[01]\.\d{3} .+ \(said \w+\)", done.stdout.splitlines()[0])
    picture.write_bytes(b"hello, I am text")
    done = run(sys.executable, client, shared_daemon.endpoint, picture)
    assert done.returncode == 1
    assert done.stderr.startswith("bad-image: ")


# What the C client uses of libzmq, for a machine that has the library and not its header: pyzmq's wheels bring it.
CONSTANTS = {name: int(getattr(zmq, name)) for name in ("REQ", "RCVTIMEO", "SNDMORE")}
HEADER = "#include <stddef.h>\n" + "".join(f"#define ZMQ_{name} {value}\n" for name, value in CONSTANTS.items())
HEADER += """
void *zmq_ctx_new(void);
void *zmq_socket(void *context, int type);
int zmq_setsockopt(void *socket, int option, const void *value, size_t length);
int zmq_connect(void *socket, const char *endpoint);
int zmq_send(void *socket, const void *data, size_t length, int flags);
int zmq_recv(void *socket, void *data, size_t length, int flags);
int zmq_errno(void);
const char *zmq_strerror(int number);
"""


@pytest.fixture
def c_client(tmp_path: Path) -> Path:
    """The C client, compiled against the libzmq that pyzmq brings."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("the C client needs a compiler: cc")
    bundled = sorted((Path(zmq.__file__).parents[1] / "pyzmq.libs").glob("libzmq*.so*"))
    if not bundled:
        pytest.skip("the C client needs libzmq: this pyzmq was built without one of its own")
    (tmp_path / "zmq.h").write_text(HEADER)
    folder = bundled[0].parent
    options = ["-Wall", "-Wextra", "-Werror", "-O1", f"-I{tmp_path}", f"-Wl,-rpath,{folder}"]
    client = tmp_path / "client"
    done = run(compiler, EXAMPLE, *options, bundled[0], f"-Wl,-rpath-link,{folder}", "-o", client)
    assert done.returncode == 0, done.stderr
    return client


def test_the_c_client_works(shared_daemon: Daemon, picture: Path, c_client: Path) -> None:
    done = run(c_client, shared_daemon.endpoint, picture)
    assert (done.returncode, done.stderr) == (0, "")
    reply: dict[str, Any] = json.loads(done.stdout)
    assert (reply["type"], reply["id"], len(reply["top_k"])) == ("answer", "1", 3)
    done = run(c_client, shared_daemon.endpoint, picture.with_name("nowhere.jpg"))
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ")
