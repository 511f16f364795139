"""Real servers of the Open Inference Protocol on the other side of the link, each with the jetsel.toml that maps it."""

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.link import THERE, there
from tests.system.daemons import serving
from tests.system.gateway.gateways import token_file

ROOT = Path(__file__).parents[2]
TENSOR = 'input = "tensor"\noutput = "logits"\n'


@dataclass(frozen=True)
class Server:
    """One that has been started. edge: the configuration's [edge] of a device that asks its model xl, as edge:xl."""

    edge: str
    url: str
    log: Path

    def says(self, words: str) -> bool:
        return words in self.log.read_text(errors="replace")


@contextlib.contextmanager
def _running(command: list[str], port: int, edge: str, folder: Path, **environment: str) -> Iterator[Server]:
    log, url = folder / "server.log", f"http://{THERE}:{port}"
    with log.open("wb") as out:
        process = subprocess.Popen(
            there(command), stdout=out, stderr=subprocess.STDOUT, cwd=folder, env=os.environ | environment
        )
    try:
        yield Server(f'[edge]\nurl = "{url}"\n{edge}', url, log)
    except BaseException:
        print(log.read_text(errors="replace")[-10_000:])
        raise
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def triton(folder: Path) -> Iterator[Server]:
    """The Triton of nvidia-pytriton, with what `deploy/triton/write_repository.py --kind python` writes."""
    (package,) = importlib.util.find_spec("pytriton").submodule_search_locations
    held = Path(package, "tritonserver")
    backends = folder / "backends"
    shutil.copytree(held / "backends", backends)
    stub = f"python_backend_stubs/{sys.version_info.major}.{sys.version_info.minor}/triton_python_backend_stub"
    shutil.copy(held / stub, backends / "python")
    script = [sys.executable, "deploy/triton/write_repository.py", str(folder / "models"), "--model", "xl"]
    edge = subprocess.run([*script, "--kind", "python"], check=True, capture_output=True, text=True).stdout
    command = [str(held / "bin/tritonserver"), f"--model-repository={folder}/models", f"--backend-directory={backends}"]
    ports = ["--http-port=8001", "--allow-grpc=false", "--allow-metrics=false"]
    libraries = str(Path(package).parent / "nvidia_pytriton.libs")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # its backend's Python is the first there
    with _running([*command, *ports], 8001, edge, folder, LD_LIBRARY_PATH=libraries, PATH=path) as server:
        yield server


@contextlib.contextmanager
def ray_serve(folder: Path) -> Iterator[Server]:
    """deploy/ray on a cluster of two nodes; it is sent tensors."""
    cluster = [sys.executable, str(ROOT / "deploy/ray/local_cluster.py"), "--family=starter", "--models=xl"]
    options = ["--nodes=2", "--replicas=2", "--host=0.0.0.0", "--port=8003"]
    edge = f'[edge.models.xl]\nremote = "starter.xl"\ninput_name = "tensor"\noutput_name = "logits"\n{TENSOR}'
    with _running([*cluster, *options], 8003, edge, folder) as server:
        yield server


@contextlib.contextmanager
def gateway(folder: Path) -> Iterator[Server]:
    """Another jetsel behind its gateway, which is sent photographs as they are and a token."""
    token = token_file(folder)
    edge = f'token_file = "{token}"\n[edge.models.xl]\nremote = "starter.xl"\n'
    with serving(folder) as daemon:
        command = [sys.executable, "-m", "jetsel", "gateway", "--endpoint", daemon.endpoint]
        options = ["--listen", f"{THERE}:8004", "--token-file", str(token)]
        with _running([*command, *options], 8004, edge, folder) as server:
            yield server
