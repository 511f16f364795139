"""docs/protocol.md against the code: its tables name every field, and its clients work as they are printed."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import msgspec
import pytest
import zmq

from jetsel import wire
from jetsel.base.config import ServerSettings
from tests.system.daemons import Daemon, drawn, encoded
from tests.unit.hollow import structs_of

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")

TABLES: dict[str, type[msgspec.Struct]] = {
    "### `classify`": wire.Classify,
    "### `answer`": wire.Answer,
    "### `answers`": wire.Answers,
    "### `failure`": wire.Failure,
    "### `reloaded`": wire.Reloaded,
}
OF_EVERY_REPLY = frozenset({"v", "id"})
TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", bytes: "string"}


def fields(
    kind: type[msgspec.Struct], prefix: str = "", seen: set[Any] | None = None
) -> Iterator[tuple[str, msgspec.structs.FieldInfo]]:
    """Yield each field by its path, objects before what they hold; an object that several fields hold, once."""
    seen = set() if seen is None else seen
    for field in msgspec.structs.fields(kind):
        if not prefix and field.name in OF_EVERY_REPLY:
            continue
        yield prefix + field.name, field
        held, is_list = next(structs_of(field.type), None), type_name(field.type).startswith("list")
        if held is not None and held not in seen:
            seen.add(held)
            yield from fields(held, f"{prefix}{field.name}{'[]' * is_list}.", seen)


def type_name(found: Any) -> str:
    if get_origin(found) is Annotated:
        return type_name(get_args(found)[0])
    known = [each for each in get_args(found) if each is not type(None)]
    if len(known) < len(get_args(found)):
        return type_name(known[0])
    if get_origin(found) is list:
        return f"list of {TYPES[known[0]]}s" if known[0] in TYPES else "list"
    return TYPES.get(found, "object")


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


def described(kind: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """What the page describes of a message: budgets are in status-fields.md, and answers in a table."""
    elsewhere = ("explanation.budget.", "answers[].")
    return {path: field for path, field in fields(kind) if not path.startswith(elsewhere)}


@pytest.mark.parametrize("heading", TABLES)
def test_a_table_names_every_field_and_says_null_where_it_may_be_null(heading: str) -> None:
    rows, known = table(heading), described(TABLES[heading])
    assert set(rows) == set(known)
    for name, field in known.items():
        assert ("or null" in rows[name][0]) == (type(None) in get_args(field.type)), name


def test_every_message_has_its_table() -> None:
    kinds = set(get_args(wire.Request)) | set(get_args(wire.Reply))
    assert set(TABLES.values()) == kinds - {wire.Status, wire.Reload, wire.StatusReply}
    assert described(wire.Status) == described(wire.Reload) == {}


def test_the_page_of_the_status_has_every_field_with_its_type() -> None:
    page = (ROOT / "docs" / "status-fields.md").read_text(encoding="utf-8")
    rows = []
    for names, kind in re.findall(r"^\| (`.+?`) \| ([^`|]+) \|", page, re.MULTILINE):
        first, *others = re.findall("`(.+?)`", names)
        beside = first[: first.rfind(".") + 1]
        rows += [(path, kind) for path in (first, *(beside + name for name in others))]
    assert rows == [(path, type_name(field.type)) for path, field in fields(wire.StatusReply)]


def test_a_default_is_what_is_taken_where_the_field_is_left_out() -> None:
    rows = table("### `classify`")
    for name, field in described(wire.Classify).items():
        default = "required" if field.default is msgspec.NODEFAULT else f"`{json.dumps(field.default)}`"
        assert rows[name][1] == default, name


def test_the_limits_are_those_of_the_code() -> None:
    limits = TEXT.split("\n## Limits\n")[1].split("\n## ")[0]
    server = ServerSettings()
    for said in (
        f"| frame one | {wire.MAX_JSON_BYTES:,} bytes |",
        f"`[server] max_image_mb`, {server.max_image_mb:g} MB",
        f"`[server] max_image_megapixels`, {server.max_image_megapixels:g} million",
        f"`[server] queue_requests`, {server.queue_requests} |",
        f"`[server] queue_mb`, {server.queue_mb:g} MB |",
    ):
        assert said in limits


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "drawn.jpg"
    path.write_bytes(encoded(drawn()))
    return path


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120, check=False)


def test_the_python_client_works_without_jetsel(shared_daemon: Daemon, picture: Path) -> None:
    client = ROOT / "examples" / "client.py"
    assert "import jetsel" not in client.read_text(encoding="utf-8")
    done = run(sys.executable, client, shared_daemon.endpoint, picture)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 3
    assert re.fullmatch(r"[01]\.\d{3} .+ \(answered by \w+\)", done.stdout.splitlines()[0])
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
    done = run(
        compiler, ROOT / "examples" / "client.c", *options, bundled[0], f"-Wl,-rpath-link,{folder}", "-o", client
    )
    assert done.returncode == 0, done.stderr
    return client


def test_the_c_client_works(shared_daemon: Daemon, picture: Path, c_client: Path) -> None:
    done = run(c_client, shared_daemon.endpoint, picture)
    assert (done.returncode, done.stderr) == (0, "")
    reply: dict[str, Any] = json.loads(done.stdout)
    assert (reply["type"], reply["id"], len(reply["top_k"])) == ("answer", "1", 3)
    done = run(
        c_client, shared_daemon.endpoint, picture, '{"unit": "shares", "xywh": [[0, 0, 0.5, 0.5], [2, 0, 1, 1]]}'
    )
    assert [one["type"] for one in json.loads(done.stdout)["answers"]] == ["answer", "failure"]
    done = run(c_client, shared_daemon.endpoint, picture.with_name("nowhere.jpg"))
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ")
