"""A real Prometheus that scrapes a gateway several times a second, and what it is asked over its API."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.processes import port_of
from tests.system.gateway.gateways import Gateway
from tests.system.gateway.servers import adapted, blocks, running
from tests.waiting import until

RULES = Path(__file__).parents[3] / "systemd" / "grafana" / "rules.yml"
OFTEN = "global: {scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 250ms}\n"


class Prometheus:
    """It listens on a port of its own."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def is_ready(self) -> bool:
        """Whether it has read what it kept and answers queries."""
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=60) as reply:
                return bool(reply.status == 200)
        except urllib.error.HTTPError:
            return False

    def get(self, path: str, **query: str) -> Any:
        """Return `data` of a reply; raises HTTPError where it refuses."""
        with urllib.request.urlopen(f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=60) as reply:
            return json.load(reply)["data"]

    def value(self, expression: str) -> float | None:
        """Return the one value that an expression has now, None where there is none."""
        found = self.get("query", query=expression)["result"]
        return float(found[0]["value"][1]) if len(found) == 1 else None

    def alerts(self) -> dict[str, str]:
        """Return the state of each alert that is pending or firing."""
        return {one["labels"]["alertname"]: one["state"] for one in self.get("alerts")["alerts"]}


@contextmanager
def scraping(gateway: Gateway, folder: Path, job: str = "") -> Iterator[Prometheus]:
    """One that is configured as docs/monitoring.md says, but for the port, the rules' place and how often it looks.

    job: a setting more of the job.
    """
    (text,) = blocks("monitoring.md", "Metrics and alerts", "yaml")
    text = adapted(text, {"    static_configs:": f"    {job}\n    static_configs:"})
    here = {"127.0.0.1:8000": f"127.0.0.1:{gateway.port}", "/usr/share/jetsel/grafana/rules.yml": str(RULES)}
    (folder / "prometheus.yml").write_text(OFTEN + adapted(text, here))
    options = ("--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address=127.0.0.1:0")
    with running("prometheus", *options, folder=folder) as process:
        prometheus = Prometheus(until(lambda: port_of(process.pid)))
        until(prometheus.is_ready)
        until(lambda: prometheus.value('up{job="jetsel"}') == 1)
        yield prometheus
