"""A Ray cluster of several nodes on this machine, each with its own processes, that serves a family until it is ended.

python deploy/ray/local_cluster.py --family starter
"""

from __future__ import annotations

import argparse
import os
import signal
import threading

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reports its use to its makers unless this stands here

import ray
from ray import serve
from ray.cluster_utils import Cluster
from serve_family import application


def main() -> None:
    """Start the nodes and the application, print where it listens, and wait."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--cpus", type=float, default=4, help="that each node counts; every replica takes one")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--family")
    parser.add_argument("--models", help="names with commas; all of the family")
    parser.add_argument("--replicas", help="of each model at most")
    parser.add_argument("--token-file")
    given = vars(parser.parse_args())
    nodes, cpus, host, port = (given.pop(name) for name in ("nodes", "cpus", "host", "port"))
    cluster = Cluster()
    for _ in range(nodes):
        cluster.add_node(num_cpus=cpus, include_dashboard=False, node_ip_address="127.0.0.1")
    ray.init(address=cluster.address, _node_ip_address="127.0.0.1")
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    serve.start(proxy_location="HeadOnly", http_options={"host": host, "port": port})
    serve.run(application({name: value for name, value in given.items() if value is not None}), name="jetsel")
    print(f"http://{host}:{port} on {len(ray.nodes())} nodes", flush=True)
    ended.wait()
    serve.shutdown()
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
