"""The sections of jetsel.toml that the daemon reads, an example of each setting, and the folders that they name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from jetsel.base.errors import ConfigError
from jetsel.base.host_settings import HostSettings
from jetsel.base.sections import Sections, decode, default_examples, parse_toml
from jetsel.base.state import state_folder

SYSTEM_CONFIG = "/etc/jetsel/jetsel.toml"

_IPC = r"^ipc:///[^\x00-\x1f]+\Z"


class ServerSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The daemon's socket, the users who may use it, and limits of what it holds at once.

    endpoint: Address of the socket (default: $JETSEL_ENDPOINT, else a socket of your own).
    group: Group of the socket's file: its members may send requests (default: the daemon's own group).
    admin_group: Group whose members may reload, besides root and the daemon's own user (default: none).
    workers: Requests that are decoded and decided at a time (default: one for each processor).
    queue_requests: Requests in the queue at most; the next is refused with `busy`.
    queue_mb: Megabytes of images in the queue at most.
    queue_megapixels: Megapixels of images and their boxes in the queue at most; the default holds two of the largest.
    client_requests: Requests of one user at a time at most (default: half of queue_requests).
    max_clients: Connections at a time at most; more wait until one closes.
    peers_mb: Megabytes of unfinished messages and unread replies, of all connections together.
    max_image_mb: Megabytes of one image file at most.
    max_image_megapixels: Megapixels of one image at most.
    drain_s: Seconds in which a daemon that stops answers what it has accepted.
    """

    endpoint: Annotated[str, Meta(pattern=_IPC)] | None = None
    group: str | None = None
    admin_group: str | None = None
    workers: Annotated[int, Meta(ge=1, le=64)] | None = None
    queue_requests: Annotated[int, Meta(ge=1, le=100_000)] = 128
    queue_mb: Annotated[float, Meta(gt=0, le=65_536)] = 64.0
    queue_megapixels: Annotated[float, Meta(gt=0, le=100_000)] = 100.0
    client_requests: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    max_clients: Annotated[int, Meta(ge=1, le=15_000)] = 1000
    peers_mb: Annotated[float, Meta(ge=1, le=1_048_576)] = 512.0
    max_image_mb: Annotated[float, Meta(gt=0, le=1024)] = 16.0
    max_image_megapixels: Annotated[float, Meta(gt=0, le=1000)] = 50.0
    drain_s: Annotated[float, Meta(ge=0, le=3600)] = 10.0


class Models(Struct, frozen=True, forbid_unknown_fields=True):
    """Which models are loaded, and what runs them.

    paths: Folders of models that are read besides the starter family's; the first wins if two have the same name.
    starter: Whether to serve the family that ships with jetsel.
    default_family: Family of requests that name none (default: your own if there is one, else imagenet, else starter).
    only: Names of the models to load; empty: all that were found.
    backend: What runs the models that `backends` does not name: onnxruntime or tensorrt.
    backends: What runs single models, by name.
    threads: Threads of one inference on ONNX Runtime.
    max_batch: Largest number of images in one run of a model.
    idle_unload_s: Seconds without a run after which a model is unloaded (default: never).
    calibrations: Folder of your calibrations.
    """

    paths: list[str] = []
    starter: bool = True
    default_family: str | None = None
    only: list[str] = []
    backend: str = "onnxruntime"
    backends: dict[str, str] = {}
    threads: Annotated[int, Meta(ge=1, le=64)] = 1
    max_batch: Annotated[int, Meta(ge=1, le=256)] = 8
    idle_unload_s: Annotated[float, Meta(ge=0.1, le=31_536_000)] | None = None
    calibrations: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")] | None = None


class Power(Struct, frozen=True, forbid_unknown_fields=True):
    """How power is measured, which rails (supply lines with a sensor) make up the total, and the budget.

    sensor: Kind of sensor; auto: the one that is there.
    sysfs: Where Linux shows the sensors.
    board: Row of the table of boards (default: found by the device tree).
    total: Rails whose sum is the total power; empty: those in the table of boards.
    labels: Names of channels that have none, by device and channel.
    rate_hz: Samples per second.
    jtop: Whether to ask jetson-stats, if it is installed, for the board's state.
    calibration: Folder of what `jetsel power calibrate` measured.
    budget_w: Watts of mean total power that policies are kept under (default: no limit).
    """

    sensor: Literal["auto", "ina3221", "ina238", "rapl", "none"] = "auto"
    sysfs: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")] = "/sys"
    board: str | None = None
    total: list[str] = []
    labels: dict[str, str] = {}
    rate_hz: Annotated[float, Meta(ge=1, le=100)] = 20.0
    jtop: bool = False
    calibration: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")] | None = None
    budget_w: Annotated[float, Meta(gt=0, le=10_000)] | None = None


class PolicySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How the daemon answers requests that give no policy, model or limits of their own.

    default: Policy that answers (default: the best of the family's calibration).
    on_doubt: What happens if no model is expected to be right: use the fallback's answer, or refuse.
    fallback: Model that answers in doubt (default: the most expensive of the family).
    wrong_at_most: Share of the answers given that may be wrong; a family's calibration goes before it (default: none).
    latency_target_ms: Milliseconds to answer in; under load, cheaper policies are used (default: no target).
    least_accuracy: Least accuracy of the policy used under load; below it requests are refused (default: none).
    """

    default: str | None = None
    on_doubt: Literal["use", "refuse"] = "use"
    fallback: str | None = None
    wrong_at_most: Annotated[float, Meta(gt=0, le=1)] | None = None
    latency_target_ms: Annotated[float, Meta(gt=0, le=3_600_000)] | None = None
    least_accuracy: Annotated[float, Meta(ge=0, le=1)] | None = None


class Log(Struct, frozen=True, forbid_unknown_fields=True):
    """What the daemon logs.

    level: Lowest level that is logged.
    requests: Whether to log a line for each request.
    """

    level: Literal["debug", "info", "warning", "error"] = "info"
    requests: bool = False


class Observe(Struct, frozen=True, forbid_unknown_fields=True):
    """What `status` reports of the answers, for pages and metrics.

    recent_answers: Latest answers that are kept in memory, labels and times; 0: none.
    drift_every: Check drift on every Nth image; 0: never.
    class_counts: Whether to count the answers of each label: this reveals what was seen.
    """

    recent_answers: Annotated[int, Meta(ge=0, le=1000)] = 50
    drift_every: Annotated[int, Meta(ge=0, le=1_000_000)] = 50
    class_counts: bool = False


Pixels = Annotated[str, Meta(pattern=r"^[1-9][0-9]{1,3}\Z")]  # TOML keys are text


class EdgeModel(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A model of the edge server. If this device has the same model, both have the same name."""

    remote: str  # the model's name on the edge server
    input: Literal["encoded", "tensor"] = "encoded"  # send the image file, or the float32 input of the model `like`
    input_name: str | None = None  # input tensor on the server; None: the model's only input
    output: Literal["ranked", "probabilities", "logits"] = "ranked"  # texts probability:wnid:label, or a number a class
    output_name: str | None = None  # output tensor; None: top_k if output is "ranked", otherwise the only output
    labels: str | None = None  # file with one class per line, in the output's order; None: the order of the family
    like: str | None = None  # model on this device with the same input; None: the model of the same name
    accuracy: Annotated[float, Meta(ge=0, le=1)] | None = None  # None: the calibration's accuracy of the same model
    accuracy_at_px: dict[Pixels, Annotated[float, Meta(ge=0, le=1)]] = {}  # shorter side of a reduced image -> accuracy


Url = Annotated[str, Meta(pattern=r"^https?://[^\x00-\x20]+\Z")]


class EdgeSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Edge servers, which speak the Open Inference Protocol over HTTP, and what may be sent there.

    url: Address of the edge server, or a list of them, of which one is asked at a time (default: none).
    token_file: File whose content is sent as the bearer token (default: none is sent).
    family: Family that the edge answers for (default: the default family).
    allow: When images may go there; low-confidence: once a model here was not sure.
    duplicate: Whether to run a model here too, in case the edge's answer comes late.
    mj_per_kb: Millijoules that 1,000 bytes to or from the edge take (default: unknown).
    models: Models of the edge, by the name that they have here.
    """

    url: Url | Annotated[list[Url], Meta(min_length=1)] | None = None
    token_file: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")] | None = None
    family: str | None = None
    allow: Literal["never", "low-confidence", "always"] = "always"
    duplicate: Literal["always", "when-needed", "never"] = "when-needed"
    mj_per_kb: Annotated[float, Meta(ge=0)] | None = None
    models: dict[str, EdgeModel] = {}

    @property
    def urls(self) -> list[str]:
        """The configured addresses without repeats and without a final slash; empty if `url` is not set."""
        configured = [self.url] if isinstance(self.url, str) else self.url or []
        return list(dict.fromkeys(url.rstrip("/") for url in configured))


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """All sections of jetsel.toml except those of add-ons (cameras, fleet), which decode their own."""

    server: ServerSettings = ServerSettings()
    models: Models = Models()
    host: HostSettings = HostSettings()
    power: Power = Power()
    policy: PolicySettings = PolicySettings()
    log: Log = Log()
    observe: Observe = Observe()
    edge: EdgeSettings = EdgeSettings()


EXAMPLES = default_examples(Config()) | {
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
    "power.sensor": 'sensor = "auto" (or "ina3221", "ina238", "rapl", "none")',
    "power.board": 'board = "jetson-tx2"',
    "power.total": 'total = ["VDD_IN"]',
    "power.labels": 'labels = { "1-0040/2" = "VDD_SOC" }',
    "power.rate_hz": "rate_hz = 20 (1 to 100)",
    "power.calibration": 'calibration = "/var/lib/jetsel/power"',
    "power.budget_w": "budget_w = 7.5",
    "policy.default": 'default = "cascade"',
    "policy.on_doubt": 'on_doubt = "use" (or "refuse")',
    "policy.wrong_at_most": "wrong_at_most = 0.05",
    "policy.latency_target_ms": "latency_target_ms = 100",
    "policy.least_accuracy": "least_accuracy = 0.8",
    "policy.fallback": 'fallback = "xl"',
    "edge.url": 'url = "http://edge.local:8000" (or several: url = ["http://edge-1:8000", "http://edge-2:8000"])',
    "edge.token_file": 'token_file = "/etc/jetsel/edge.token"',
    "edge.family": 'family = "imagenet"',
    "edge.allow": 'allow = "always" (or "never", "low-confidence")',
    "edge.duplicate": 'duplicate = "when-needed" (or "always", "never")',
    "edge.mj_per_kb": "mj_per_kb = 1.2",
    "edge.models": 'models = { xl = { remote = "starter.xl" } }',
    "log.level": 'level = "info" (or "debug", "warning", "error")',
}

REMOVED = {
    "power.replay": "jetsel plays no recordings of power any more: remove the line",
    "power.battery_reserve_percent": "use power.budget_w, or requests with most_energy_mj",
}
"""Settings of earlier versions -> what to do instead."""

SECTIONS = Sections(Config, EXAMPLES, REMOVED)


def parse(text: str, addons: Collection[str] = ()) -> Config:
    """Return the configuration in the text of a jetsel.toml.

    addons: names of sections that add-ons decode; they are ignored here. Raises ConfigError, whose one line gives the
    key, the problem and an example.
    """
    ours = {section: values for section, values in parse_toml(text).items() if section not in addons}
    config = decode(ours, SECTIONS, addons)
    server = config.server
    if server.peers_mb < 2 * server.max_image_mb:
        raise ConfigError(
            f"server.peers_mb: {server.peers_mb:g} MB cannot hold two messages with images of {server.max_image_mb:g} "
            f"MB (server.max_image_mb): raise server.peers_mb or lower server.max_image_mb; "
            f"example: {EXAMPLES['server.peers_mb']}"
        )
    return config


def calibrations_folder(models: Models, environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder of the owner's calibrations: [models] calibrations, or the default that state_folder gives."""
    return Path(models.calibrations) if models.calibrations else state_folder("calibrations", environment)


def power_folder(power: Power, environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder of `jetsel power calibrate`: [power] calibration, or the default that state_folder gives."""
    return Path(power.calibration) if power.calibration is not None else state_folder("power", environment)
