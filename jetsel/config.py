"""What jetsel.toml may say: frozen values, decoded once; a typo fails with the key, what is wrong and an example."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from jetsel.errors import ConfigError, did_you_mean
from jetsel.events import harmless
from jetsel.host_settings import HostSettings
from jetsel.state import state_folder

SYSTEM_CONFIG = "/etc/jetsel/jetsel.toml"

_IPC = r"^ipc:///[^\x00-\x1f]+\Z"


class Server(Struct, frozen=True, forbid_unknown_fields=True):
    """The socket, who may use it, and what is accepted at once."""

    endpoint: Annotated[str, Meta(pattern=_IPC)] | None = None  # None: in the user's runtime directory
    group: str | None = None  # of the socket's file; None: the daemon's own
    admin_group: str | None = None  # may reload, beside root and the daemon's own user
    workers: Annotated[int, Meta(ge=1, le=64)] | None = None  # None: one for each processor
    queue_requests: Annotated[int, Meta(ge=1, le=100_000)] = 128
    queue_mb: Annotated[float, Meta(gt=0, le=65_536)] = 64.0
    queue_megapixels: Annotated[float, Meta(gt=0, le=100_000)] = 100.0  # two of the largest photographs
    client_requests: Annotated[int, Meta(ge=1, le=100_000)] | None = None  # under way for one user; None: half
    max_clients: Annotated[int, Meta(ge=1, le=15_000)] = 1000  # connections; more wait until one closes
    peers_mb: Annotated[float, Meta(ge=1, le=1_048_576)] = 512.0  # of unfinished messages and unread replies
    max_image_mb: Annotated[float, Meta(gt=0, le=1024)] = 16.0
    max_image_megapixels: Annotated[float, Meta(gt=0, le=1000)] = 50.0
    drain_s: Annotated[float, Meta(ge=0, le=3600)] = 10.0  # what was accepted is answered within, once it is to stop


class Models(Struct, frozen=True, forbid_unknown_fields=True):
    """Which models are loaded, and on what."""

    paths: list[str] = []  # folders of manifests beside the starter family
    starter: bool = True  # serve the family that ships with jetsel
    default_family: str | None = None  # None: the owner's where it is one, else imagenet, else starter
    only: list[str] = []  # names; empty: every model found
    backend: str = "onnxruntime"  # of every model that `backends` does not name
    backends: dict[str, str] = {}  # by model
    threads: Annotated[int, Meta(ge=1, le=64)] = 1  # of one inference
    max_batch: Annotated[int, Meta(ge=1, le=256)] = 8
    idle_unload_s: Annotated[float, Meta(ge=0.1, le=31_536_000)] | None = None  # without a run; None: never unloaded
    calibrations: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")] | None = None  # None: see calibrations_folder


class Host(Struct, frozen=True, forbid_unknown_fields=True):
    """The process that owns the GPU, and the engines that are built for it."""

    interpreter: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")] | None = None  # None: JetPack's
    reserve_mb: Annotated[float, Meta(ge=0, le=1_048_576)] = 256.0  # of memory, left free by every load
    engines: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")] | None = None  # None: see engines_folder
    precision: Literal["fp32", "fp16", "int8"] = "fp16"
    workspace_mb: Annotated[float, Meta(gt=0, le=1_048_576)] = 512.0  # of memory that a build may try tactics in
    max_batch: Annotated[int, Meta(ge=1, le=256)] = 8  # photographs of one run that engines are built for


class Power(Struct, frozen=True, forbid_unknown_fields=True):
    """Where power is read, which rails make the total, and how much of it may be spent."""

    sensor: Literal["auto", "ina3221", "ina238", "rapl", "nvml", "none"] = "auto"  # auto: what is there
    sysfs: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")] = "/sys"
    replay: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")] | None = None  # a recorded trace, in place of sensors
    board: str | None = None  # which table of boards holds; None: found by the device tree
    total: list[str] = []  # rails whose sum is the total; empty: as the board's table says
    labels: dict[str, str] = {}  # names of channels that have none, by device and channel: 1-0040/2
    rate_hz: Annotated[float, Meta(ge=1, le=100)] = 20.0  # of samples
    jtop: bool = False  # ask the service of jetson-stats for the board's state, where it is installed
    calibration: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")] | None = None  # None: see power_folder
    budget_w: Annotated[float, Meta(gt=0, le=10_000)] | None = None  # mean total power that policies are kept under
    battery_reserve_percent: Annotated[float, Meta(gt=0, le=100)] | None = None  # below it energy is saved; None: never


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """What decides where the request does not say."""

    default: str | None = None  # None: what the family's calibration found best
    on_doubt: Literal["use", "refuse"] = "use"
    fallback: str | None = None  # the model used in doubt; None: the most expensive of the family


class Log(Struct, frozen=True, forbid_unknown_fields=True):
    """How much is told."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    requests: bool = False  # one line for each request


class Observe(Struct, frozen=True, forbid_unknown_fields=True):
    """What `status` tells of the answers, for pages and metrics."""

    recent_answers: Annotated[int, Meta(ge=0, le=1000)] = 50  # the last ones, labels and times; 0: none is kept
    drift_every: Annotated[int, Meta(ge=0, le=1_000_000)] = 50  # features of each so manyth photograph; 0: of none
    class_counts: bool = False  # how many answers had each label: what was seen may be nobody's business


Pixels = Annotated[str, Meta(pattern=r"^[1-9][0-9]{1,3}\Z")]  # keys of TOML are text


class EdgeModel(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A model of the edge; its name here is the name of the same model here where there is one."""

    remote: str  # its name there
    input: Literal["encoded", "tensor"] = "encoded"  # the photograph's file, or float32 as the model here takes it
    input_name: str | None = None  # None: its only input
    output: Literal["ranked", "probabilities", "logits"] = "ranked"  # probability:wnid:label, or numbers by class
    output_name: str | None = None  # None: its only output; of ranked, top_k
    labels: str | None = None  # a file with a class a line, in the order of its output; None: that of the family
    like: str | None = None  # the model here whose input it takes; None: the one of its name
    accuracy: Annotated[float, Meta(ge=0, le=1)] | None = None  # None: that of its name in the calibration
    accuracy_at_px: dict[Pixels, Annotated[float, Meta(ge=0, le=1)]] = {}  # of photographs reduced to a shorter side


Url = Annotated[str, Meta(pattern=r"^https?://[^\x00-\x20]+\Z")]


class Edge(Struct, frozen=True, forbid_unknown_fields=True):
    """A bigger machine that speaks the Open Inference Protocol over HTTP, or several, and what may go there."""

    url: Url | Annotated[list[Url], Meta(min_length=1)] | None = None  # of several one is asked; None: there is none
    token_file: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")] | None = None  # sent as a bearer's
    family: str | None = None  # that it answers for; None: the default one
    allow: Literal["never", "low-confidence", "always"] = "always"  # low-confidence: once a model here was not sure
    duplicate: Literal["always", "when-needed", "never"] = "when-needed"  # run here, too, in case it comes late
    mj_per_kb: Annotated[float, Meta(ge=0)] | None = None  # that 1,000 bytes to or from it take; None: not known
    models: dict[str, EdgeModel] = {}

    @property
    def urls(self) -> list[str]:
        """Each of them once, empty where there is none."""
        given = [self.url] if isinstance(self.url, str) else self.url or []
        return list(dict.fromkeys(url.rstrip("/") for url in given))


class Fleet(Struct, frozen=True, forbid_unknown_fields=True):
    """The repository that `jetsel agent` has this device's models from, and what it may take of the device for them."""

    url: str | None = None  # a folder, or http(s)://; None: there is none
    upload: str | None = None  # where usage is written to, by PUT where it is http(s)://; None: url
    device: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_.-]*\Z", max_length=64)] | None = (
        None  # None: the host's name
    )
    keys: list[Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")]] = []  # files of public keys that may sign
    token_file: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")] | None = None  # sent as a bearer's
    storage_mb: Annotated[float, Meta(gt=0, le=1_048_576)] = 1000.0  # of disk for models
    reserve_mb: Annotated[float, Meta(ge=0, le=1_048_576)] = 200.0  # of disk, left free by every download
    memory_mb: Annotated[float, Meta(gt=0, le=1_048_576)] | None = None  # that the daemon may hold; None: all there is
    deadline_ms: Annotated[float, Meta(gt=0, le=3_600_000)] | None = None  # a later answer counts as wrong in plans
    canary: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")] | None = None  # photographs: FAMILY/CLASS/...
    spool_mb: Annotated[float, Meta(gt=0, le=1024)] = 4.0  # of usage that waits to be sent; the oldest goes first


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole of jetsel.toml."""

    server: Server = Server()
    models: Models = Models()
    host: Host = Host()
    power: Power = Power()
    policy: Policy = Policy()
    log: Log = Log()
    observe: Observe = Observe()
    edge: Edge = Edge()
    fleet: Fleet = Fleet()


_DEFAULTS: dict[str, dict[str, Any]] = msgspec.to_builtins(Config())
EXAMPLES = {
    f"{section}.{key}": f"{key} = {msgspec.json.encode(value).decode()}"  # these are TOML's, too
    for section, values in _DEFAULTS.items()
    for key, value in values.items()
} | {
    "server.endpoint": 'endpoint = "ipc:///run/jetsel/jetsel.sock"',
    "server.group": 'group = "video"',
    "server.admin_group": 'admin_group = "adm"',
    "server.workers": "workers = 4",
    "server.client_requests": "client_requests = 32",
    "models.paths": 'paths = ["/var/lib/jetsel/models"]',
    "models.default_family": 'default_family = "starter"',
    "models.only": 'only = ["xs", "xl"]',
    "models.backends": 'backends = { xl = "tensorrt" }',
    "models.idle_unload_s": "idle_unload_s = 600",
    "models.calibrations": 'calibrations = "/var/lib/jetsel/calibrations"',
    "host.interpreter": 'interpreter = "/usr/bin/python3.6"',
    "host.engines": 'engines = "/var/lib/jetsel/engines"',
    "host.precision": 'precision = "fp16" (or "fp32", "int8")',
    "power.sensor": 'sensor = "auto" (or "ina3221", "ina238", "rapl", "nvml", "none")',
    "power.replay": 'replay = "/var/lib/jetsel/power/trace.csv"',
    "power.board": 'board = "jetson-tx2"',
    "power.total": 'total = ["VDD_IN"]',
    "power.labels": 'labels = { "1-0040/2" = "VDD_SOC" }',
    "power.rate_hz": "rate_hz = 20 (from 1 to 100: energies are of seconds, and need no more)",
    "power.calibration": 'calibration = "/var/lib/jetsel/power"',
    "power.budget_w": "budget_w = 7.5",
    "power.battery_reserve_percent": "battery_reserve_percent = 20",
    "policy.default": 'default = "cascade"',
    "policy.on_doubt": 'on_doubt = "use" (or "refuse")',
    "policy.fallback": 'fallback = "xl"',
    "edge.url": 'url = "http://edge.local:8000" (or several: url = ["http://edge-1:8000", "http://edge-2:8000"])',
    "edge.token_file": 'token_file = "/etc/jetsel/edge.token"',
    "edge.family": 'family = "imagenet"',
    "edge.allow": 'allow = "always" (or "never", "low-confidence")',
    "edge.duplicate": 'duplicate = "when-needed" (or "always", "never")',
    "edge.mj_per_kb": "mj_per_kb = 1.2",
    "edge.models": 'models = { xl = { remote = "starter.xl" } }',
    "fleet.url": 'url = "https://models.example/fleet"',
    "fleet.upload": 'upload = "https://models.example/fleet"',
    "fleet.device": 'device = "line-3"',
    "fleet.keys": 'keys = ["/etc/jetsel/fleet.key.pub"]',
    "fleet.token_file": 'token_file = "/etc/jetsel/fleet.token"',
    "fleet.memory_mb": "memory_mb = 512",
    "fleet.deadline_ms": "deadline_ms = 50",
    "fleet.canary": 'canary = "/var/lib/jetsel/canary"',
    "log.level": 'level = "info" (or "debug", "warning", "error")',
}

_FROM_AFAR = "the daemon listens on its unix socket alone; reach it over ssh or TLS, see 'From afar' in docs/deploy.md"
GONE = {
    "host.build_at_start": "leave it out; run `jetsel models build`, a unit before each start (docs/deploy.md)",
    "policies": "leave it out; `jetsel calibrate PHOTOS` fits a cascade to your photographs, rungs and thresholds",
    "power.idle_rate_hz": "leave it out; power.rate_hz, 20 a second by default, is the one rate",
    "server.tcp": _FROM_AFAR,
    "server.keys": _FROM_AFAR,
    "server.client_rate_hz": "leave it out; server.client_requests bounds what one user has under way",
    "server.client_connections": "leave it out; server.max_clients bounds all connections together",
    "server.peer_timeout_s": "leave it out; a peer may take its time, and server.peers_mb bounds what is held for it",
}
"""Settings of earlier versions: what to do instead of each, told where a file still has it."""

_ANY_EXAMPLE = "[server] then a line queue_requests = 128"
_UNKNOWN = re.compile(r"unknown field `(?P<field>[^`]+)`")
_PATH = re.compile(r" - at `(?:key in )?\$\.?(?P<path>[^`]*)`$")


def parse(text: str) -> Config:
    """Read the text of a jetsel.toml; raises ConfigError with one line: the key, what is wrong, an example."""
    try:
        plain = msgspec.toml.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ConfigError(harmless(f"not TOML: {error}; example: {_ANY_EXAMPLE}")) from None
    _refuse_what_is_gone(plain)
    try:
        config = msgspec.convert(plain, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(harmless(_explain(str(error)))) from None
    server = config.server
    if server.peers_mb < 2 * server.max_image_mb:
        raise ConfigError(
            f"server.peers_mb: {server.peers_mb:g} has no room for two messages with an image of server.max_image_mb, "
            f"{server.max_image_mb:g}: raise the one or lower the other; example: {EXAMPLES['server.peers_mb']}"
        )
    return config


def _refuse_what_is_gone(plain: dict[str, Any]) -> None:
    """Raise ConfigError where the file has a setting that an earlier version knew."""
    for section, values in plain.items():
        for key in (section, *(f"{section}.{name}" for name in (values if isinstance(values, dict) else ()))):
            if (instead := GONE.get(key)) is not None:
                raise ConfigError(f"{key}: there is no such setting any more: {instead}")


def calibrations_folder(models: Models, environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder of the owner's calibrations: models.calibrations where it is set, else see state_folder."""
    if models.calibrations is not None:
        return Path(models.calibrations)
    return state_folder("calibrations", environment)


def engines_folder(host: Host, environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder of the engines built on this device: host.engines where it is set, else see state_folder."""
    return Path(host.engines) if host.engines is not None else state_folder("engines", environment)


def host_settings(host: Host, environment: Mapping[str, str] | None = None) -> HostSettings:
    """Return [host] as the engines take it."""
    return HostSettings(
        folder=engines_folder(host, environment),
        interpreter=host.interpreter,
        precision=host.precision,
        max_batch=host.max_batch,
        workspace_bytes=int(host.workspace_mb * 1e6),
        reserve_bytes=int(host.reserve_mb * 1e6),
    )


def power_folder(power: Power, environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder of what `jetsel power calibrate` measured: power.calibration if set, else see state_folder."""
    return Path(power.calibration) if power.calibration is not None else state_folder("power", environment)


def fleet_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder of what `jetsel agent` keeps and installs, see state_folder."""
    return state_folder("fleet", environment)


def _explain(message: str) -> str:
    where = _PATH.search(message)
    path = where["path"] if where else ""
    what = _PATH.sub("", message)
    unknown = _UNKNOWN.search(message)
    if unknown:
        key = f"{path}.{unknown['field']}" if path else unknown["field"]
        known = _known(path)
        near = did_you_mean(unknown["field"], known)
        return f"{key}: there is no such key{near}; known here: {', '.join(known)}; example: {_example(path)}"
    if "pattern" in what or "regex" in what:
        what = "this value has the wrong form"
    return f"{path or 'jetsel.toml'}: {what[0].lower() + what[1:]}; example: {_example(path)}"


def _known(path: str) -> list[str]:
    """The keys that may stand in this section."""
    if not path:
        return [field.name for field in msgspec.structs.fields(Config)]
    return sorted(key.removeprefix(f"{path}.") for key in EXAMPLES if key.startswith(f"{path}."))


def _example(path: str) -> str:
    path = re.sub(r"\[.*?\]", "", path).removesuffix("[...]")
    if path in EXAMPLES:
        return EXAMPLES[path]
    within = [example for key, example in EXAMPLES.items() if path and key.startswith(path.split(".")[0])]
    return within[0] if within else _ANY_EXAMPLE


def effective(config: Config) -> dict[str, Any]:
    """Return the configuration as plain values for printing; what is None is left to jetsel and stays out."""
    plain: dict[str, Any] = msgspec.to_builtins(config)
    return {
        section: {key: value for key, value in values.items() if value is not None} for section, values in plain.items()
    }
