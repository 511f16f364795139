"""docs/edge.md: a site's edges and their device, configured as it says but for names, ports and paths."""

import contextlib
import re
import shlex
from pathlib import Path

import pytest

import jetsel
from jetsel.base.errors import JetselError
from tests.system.daemons import Start
from tests.system.edge.conftest import PICTURES, edge_of
from tests.system.gateway.gateways import opened, token_file
from tests.waiting import until

TEXT = (Path(__file__).parents[3] / "docs" / "edge.md").read_text("utf-8")


@pytest.mark.slow
def test_a_device_asks_the_larger_models_of_its_sites_edges(start: Start, tmp_path: Path) -> None:
    section = TEXT.split("\n## A site's edge\n")[1].split("\n## ")[0]
    site, options, device, checks = re.findall(r"^```\w+\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    token = str(token_file(tmp_path))
    options = options.split("JETSEL_GATEWAY_OPTIONS=")[1].replace("/etc/jetsel/gateway.token", token)
    listen = shlex.split(options.replace("0.0.0.0:8000", "127.0.0.1:0"))
    with contextlib.ExitStack() as stack:
        sites = [start(site, name=name) for name in ("edge-1", "edge-2")]
        gateways = [stack.enter_context(opened(one.endpoint, *listen)) for one in sites]
        for name, gateway in zip(("edge-1", "edge-2"), gateways, strict=True):
            device = device.replace(f"http://{name}.site:8000", gateway.url)
        daemon = start(device.replace("/etc/jetsel/edge.token", token), name="device")
        here, there = (stack.enter_context(jetsel.Client(one.endpoint, retry=False)) for one in (daemon, sites[0]))
        until(lambda: all(one.reason is None for one in edge_of(here).servers))
        (family,) = here.status().families
        assert [model.name for model in family.models] == ["xs", "s"]
        assert "rejected" not in family.calibration
        (deadline_ms,) = map(float, re.findall(r"--deadline-ms (\d+)", checks))
        until(lambda: any(_answers(here, picture, deadline_ms) == "edge:m-night" for picture in PICTURES))
        for model in ("l", "xl"):
            expected = [there.classify(picture, model=model).label for picture in PICTURES]
            assert [here.classify(picture, model=f"edge:{model}").label for picture in PICTURES] == expected
        used, (other,) = edge_of(here).url, [one.url for one in edge_of(here).servers if one.url != edge_of(here).url]
        next(gateway for gateway in gateways if gateway.url == used).process.kill()
        assert here.classify(PICTURES[0], model="edge:xl").model == "edge:xl", "the next one answers"
        until(lambda: edge_of(here).url == other)


def _answers(client: jetsel.Client, picture: bytes, deadline_ms: float) -> str | None:
    """The model that answers by itself, None if a busy machine kept no deadline."""
    with contextlib.suppress(JetselError):
        return client.classify(picture, deadline_ms=deadline_ms).model
    return None
