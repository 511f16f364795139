"""deploy/ray under load: another replica comes, what is pending is one batch, and a bad photograph harms no other."""

import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from benchmarks.link import THERE, Quality, link
from tests.edge_servers.servers import ROOT, Server, ray_serve
from tests.system.daemons import drawn, encoded
from tests.waiting import until

CALLERS = 16


def ask(client: triton.InferenceServerClient, photograph: bytes) -> dict[str, Any] | str:
    """What a reply says beside the labels, or the refusal."""
    image = triton.InferInput("image", [1], "BYTES")
    image.set_data_from_numpy(np.array([photograph], dtype=object))
    try:
        return client.infer("starter.xl", [image]).get_response()["parameters"]
    except InferenceServerException as refused:
        return str(refused.message())


def is_ready(server: Server) -> bool:
    return server.says("http://0.0.0.0:8003 on 2 nodes")


def test_load_brings_a_replica_and_batches_and_a_bad_photograph_harms_no_other(tmp_path: Path) -> None:
    quick = Quality(delay_ms=1.0, jitter_ms=0.0, loss=0.0, megabits_per_s=1000.0)
    with link(quick), ray_serve(tmp_path) as server:
        until(lambda: is_ready(server))
        replicas, batches, refusals = set(), set(), set()

        def caller(number: int) -> None:
            with triton.InferenceServerClient(f"{THERE}:8003", network_timeout=60) as client:
                for turn in itertools.count():
                    is_bad = (turn + number) % CALLERS == 0
                    told = ask(client, b"no photograph" if is_bad else encoded(drawn(number)))
                    assert isinstance(told, str) == is_bad, told
                    if isinstance(told, str):
                        refusals.add(told)
                    else:
                        replicas.add(told["replica"])
                        batches.add(told["batch"])
                    if ended or (len(replicas) == 2 and len(batches) > 1):
                        return

        ended: list[bool] = []
        with ThreadPoolExecutor(CALLERS) as callers:
            running = [callers.submit(caller, number) for number in range(CALLERS)]
            try:
                until(lambda: all(one.done() for one in running))
            finally:
                ended.append(True)
        for one in running:
            one.result()
        assert len(replicas) == 2, "as many as --replicas allows"
        assert 1 < max(batches) <= 8
        assert len(refusals) == 1
        assert "not a JPEG" in refusals.pop()


BUILD = """
import importlib, sys, yaml
from ray.serve.schema import ServeDeploySchema
(found,) = ServeDeploySchema.model_validate(yaml.safe_load(open("serve.yaml"))).applications
module, _, builder = found.import_path.partition(":")
getattr(importlib.import_module(module), builder)(found.args)
"""


def test_the_configuration_for_a_cluster_is_one_of_ray_serve_s_and_builds_the_application() -> None:
    built = subprocess.run([sys.executable, "-c", BUILD], cwd=ROOT / "deploy/ray", capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
