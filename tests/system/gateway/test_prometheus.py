"""The dashboard and the alert rules beside a real gateway: promtool reads them, and a real Prometheus scrapes it."""

import json
import math
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import jetsel
from jetsel.artefact.calibration import MeasuredEnergy
from tests.processes import port_of
from tests.system.boards import Board
from tests.system.daemons import Daemon, drawn, serving
from tests.system.gateway.conftest import Open
from tests.system.gateway.gateways import DOCS, Gateway, adapted, blocks, running, token_file
from tests.unit.daemon.families import calibrate, put_family
from tests.unit.power.machines import put
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


pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Prometheus: apt-get install prometheus"),
]

DASHBOARD = RULES.with_name("dashboard.json")
RULES_TEST = Path(__file__).with_name("rules_test.yml")
ZONE = "sys/class/thermal/thermal_zone0"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that knows all that can be told: power, energies, a calibration that expects something, a host."""
    folder = tmp_path_factory.mktemp("told")
    board = Board(folder / "board")
    board.calibrate()
    put(board.root, {f"{ZONE}/type": "GPU-therm\n", f"{ZONE}/temp": "41500\n"})
    cats = put_family(folder / "cats", "cats", "cat-s", "cat-l")
    energy = MeasuredEnergy(mean_mj={"cat-s": 1000.0, "cat-l": 4000.0}, half_width_mj={"cat-s": 1.0, "cat-l": 2.0})
    calibrate(cats, "cats", energy=energy)
    models = f'[models]\npaths = ["{cats}"]\nbackends = {{ cat-s = "onnxruntime-hosted" }}'
    rest = f'[policy]\nlatency_target_ms = 60000\n[host]\ninterpreter = "{sys.executable}"\n[observe]\ndrift_every = 1'
    with serving(folder, board.config(models, rest)) as daemon:
        with jetsel.Client(daemon.endpoint) as client:
            ask(client, 200)  # from there on drift is told
            watts = [8.0, 9.0]

            def is_judged() -> bool:
                board.power(watts[0])
                watts.reverse()
                power = client.status().power
                return power is not None and power.judged is not None and power.judged.ratio is not None

            until(is_judged)
        yield daemon


def ask(client: jetsel.Client, count: int) -> None:
    for seed in range(count):
        client.classify(drawn(seed), family="starter", deadline_ms=60_000)
        client.classify(drawn(seed), family="starter")
        client.classify(drawn(seed), family="cats")


@pytest.fixture
def gateway(daemon: Daemon, open_gateway: Open) -> Gateway:
    return open_gateway(daemon.endpoint)


def metrics(gateway: Gateway) -> str:
    text: bytes = gateway.ask("GET", "/metrics")[1]
    return text.decode()


def queries() -> list[str]:
    """Each expression of the dashboard."""
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", [])]


def promtool(*command: object, said: str = "") -> str:
    words = ["promtool", *map(str, command)]
    done = subprocess.run(words, input=said, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_metric_that_the_dashboard_and_the_rules_name_is_told(gateway: Gateway) -> None:
    told = set(re.findall(r"^(jetsel_\w+)", metrics(gateway), re.MULTILINE))
    named = {file.name: set(re.findall(r"\bjetsel_\w+", file.read_text())) for file in (DASHBOARD, RULES)}
    assert all(len(names) >= 10 for names in named.values())
    assert {name: names - told for name, names in named.items()} == {name: set() for name in named}


def test_the_board_s_temperatures_are_told(gateway: Gateway) -> None:
    assert '\njetsel_temperature_celsius{zone="GPU-therm"} 41.5\n' in metrics(gateway)


def test_promtool_accepts_the_metrics_and_the_rules_and_their_alerts_fire_when_they_should(gateway: Gateway) -> None:
    promtool("check", "metrics", said=metrics(gateway))
    assert f"{RULES.read_text().count('- alert:')} rules found" in promtool("check", "rules", RULES)
    promtool("test", "rules", RULES_TEST)


def test_a_gateway_with_a_token_is_scraped_by_who_is_told_it(
    daemon: Daemon, open_gateway: Open, tmp_path: Path
) -> None:
    secret = token_file(tmp_path)
    gateway = open_gateway(daemon.endpoint, "--token-file", str(secret))
    told = re.search(r"`(authorization: .*?)`", (DOCS / "monitoring.md").read_text())
    job = adapted(told[1], {"/etc/prometheus/jetsel.token": str(secret)})
    with scraping(gateway, tmp_path, job) as prometheus:
        assert prometheus.value("jetsel_up") == 1


def test_a_real_prometheus_draws_the_dashboard_and_tells_of_a_daemon_that_went(
    daemon: Daemon, gateway: Gateway, tmp_path: Path
) -> None:
    with scraping(gateway, tmp_path) as prometheus:
        assert prometheus.value("jetsel_up") == 1
        target = prometheus.get("targets")["activeTargets"][0]["labels"]
        assert target == {"job": "jetsel", "instance": f"127.0.0.1:{gateway.port}"}
        with jetsel.Client(daemon.endpoint) as client:
            ask(client, 20)

        def is_drawn(query: str) -> bool:
            now = query.replace("$board", target["instance"]).replace("$__rate_interval", "1m")
            found = prometheus.get("query", query=now)["result"]
            return any(math.isfinite(float(one["value"][1])) for one in found)

        for query in queries():
            assert until(lambda query=query: is_drawn(query)), query
        names = [one["name"] for group in prometheus.get("rules")["groups"] for one in group["rules"]]
        assert "JetselDown" in names
        assert "JetselDown" not in prometheus.alerts()
        daemon.stop()
        until(lambda: prometheus.value("jetsel_up") == 0)
        until(lambda: prometheus.alerts().get("JetselDown") in ("pending", "firing"))
