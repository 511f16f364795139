"""The text of jetsel.toml: an example of each setting, removed settings, and what must fit together."""

from __future__ import annotations

from collections.abc import Collection

from jetsel.base.config import Config
from jetsel.base.errors import ConfigError
from jetsel.base.sections import Sections, decode, default_examples, parse_toml

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
"""Settings of earlier versions, and what replaces each."""

SECTIONS = Sections(Config, EXAMPLES, REMOVED)


def parse(text: str, addons: Collection[str] = ()) -> Config:
    """Read the text of a jetsel.toml; raises ConfigError with one line: the key, what is wrong, an example.

    addons: names of sections that an add-on decodes; they are accepted and left to it.
    """
    plain = parse_toml(text)
    config = decode({name: values for name, values in plain.items() if name not in addons}, SECTIONS, addons)
    server = config.server
    if server.peers_mb < 2 * server.max_image_mb:
        raise ConfigError(
            f"server.peers_mb: {server.peers_mb:g} MB cannot hold two messages with images of {server.max_image_mb:g} "
            f"MB (server.max_image_mb): raise server.peers_mb or lower server.max_image_mb; "
            f"example: {EXAMPLES['server.peers_mb']}"
        )
    return config
