"""What `status` tells of a real daemon: each message counted once, where time went, reloads, hosts, and identities."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import jetsel.zoo
from jetsel.policies import coding
from tests.system.command import jetsel as command
from tests.system.daemons import Connect, Peer, Start, drawn, encoded
from tests.system.hosts import host_of
from tests.waiting import until

LIMIT_S = 60.0
CASCADE = '[models]\nonly = ["xs", "s"]\n[policies.both]\nmodels = ["xs", "s"]\nthresholds = [1.0]\n'


def test_every_message_counts_once_whoever_sends_it(start: Start, connect: Connect) -> None:
    daemon = start('[models]\nonly = ["xs"]\n[server]\nqueue_requests = 2\n')
    image = encoded(drawn())
    ended: Counter[str] = Counter()
    counting = threading.Lock()

    def work(place: int) -> None:
        peer = Peer(daemon.endpoint)
        for i in range(60):
            message: tuple[Any, ...] = (
                ({"type": "classify"}, image),
                ({"type": "classify"}, b"no image"),
                ({"type": "classify", "model": "none"}, image),
                ({"type": "dance"},),
                (b"no JSON",),
                ({"type": "classify"}, image, b"one frame too many"),
            )[(place + i) % 6]
            reply = peer.ask(*message)
            with counting:
                ended["ok" if reply["type"] == "answer" else reply["code"]] += 1
        peer.close()

    threads = [threading.Thread(target=work, args=(place,)) for place in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = connect(daemon).status()
    assert told["requests"] == ended
    assert sum(ended.values()) == 300
    assert told["stages_ms"]["answers"] == ended["ok"] == told["families"][0]["answers"]
    assert told["queue"]["most_requests"] == 2
    assert (told["queue"]["waiting"], told["queue"]["working"], told["queue"]["bytes"]) == (0, 0, 0)


def test_stages_and_models_have_percentiles_and_models_their_escalations(start: Start, connect: Connect) -> None:
    peer = connect(start(CASCADE))
    told = peer.status()
    assert told["stages_ms"]["answers"] == 0
    assert told["stages_ms"]["total"] is None, "what is not known is null"
    image = encoded(drawn())
    answers = [peer.classify(image, policy=policy) for policy in ["both"] * 3 + ["single:xs"] * 2]
    assert [len(answer["ran"]) for answer in answers] == [2, 2, 2, 1, 1]
    told = peer.status()
    (family,) = told["families"]
    assert (family["answers"], family["escalated"]) == (5, 3)
    runs = {model["name"]: (model["runs"], model["escalations"]) for model in family["models"]}
    assert runs == {"xs": (5, 3), "s": (3, 0)}
    totals = sorted(answer["stages_ms"]["total"] for answer in answers)
    stages = told["stages_ms"]
    assert list(stages["total"].values()) == pytest.approx([totals[2], totals[4], totals[4]], rel=1e-6), "float32"
    assert stages["features"] is None
    for model in family["models"]:
        times = [run["latency_ms"] for answer in answers for run in answer["ran"] if run["model"] == model["name"]]
        assert model["p99_ms"] == pytest.approx(max(times), abs=1e-4, rel=1e-6)
        assert model["p50_ms"] <= model["p95_ms"] <= model["p99_ms"]


def test_a_reload_is_told_of_whether_it_was_done_or_refused(start: Start, connect: Connect) -> None:
    daemon = start(CASCADE)
    peer = connect(daemon)
    told = peer.status()
    assert (told["reloads"], told["last_reload"]) == ({}, None)
    good = daemon.config.read_text()
    peer.classify(encoded(drawn()), policy="both")
    daemon.config.write_text(good + "[log]\nrequests = true\n")
    assert peer.ask({"type": "reload"})["type"] == "reloaded"
    told = peer.status()
    assert told["last_reload"]["changed"] == ["[log]"]
    assert told["last_reload"]["refused"] is None
    assert [m["runs"] for m in told["families"][0]["models"]] == [1, 1], "what stays loaded keeps its counts"
    daemon.config.write_text(good + "[lgo]\n")
    failure = peer.ask({"type": "reload"})
    assert failure["code"] == "reload-failed"
    daemon.process.send_signal(signal.SIGHUP)
    told = until(lambda: (now := peer.status())["reloads"].get("reload-failed") == 2 and now)
    assert told["reloads"] == {"ok": 1, "reload-failed": 2}
    assert told["last_reload"]["refused"] == failure["message"]
    assert "reload-failed" not in told["requests"], "one reload is counted in one place"


def test_an_engine_host_s_restarts_are_counted_with_the_reason(start: Start, connect: Connect) -> None:
    daemon = start('[models]\nonly = ["xs"]\nbackend = "onnxruntime-hosted"\n')
    peer = connect(daemon)
    (host,) = peer.status()["hosts"]
    first = host_of(daemon)
    assert host == {
        "backend": "onnxruntime-hosted",
        "state": "running",
        "reason": None,
        "pid": first,
        "restarts": 0,
        "last_end": None,
        "last_end_ago_s": None,
    }
    os.kill(first, signal.SIGKILL)
    host = until(lambda: (now := peer.status()["hosts"][0])["restarts"] == 1 and now)
    assert host["state"] == "running"
    assert host["pid"] not in (first, None)
    assert "SIGKILL" in host["last_end"]
    assert 0 <= host["last_end_ago_s"] < LIMIT_S
    printed = command("status", "--endpoint", daemon.endpoint).stdout
    assert f"engine host for onnxruntime-hosted: running as process {host['pid']}, 1 restart" in printed


def test_models_in_the_daemon_s_own_process_have_no_host(start: Start, connect: Connect) -> None:
    assert connect(start(CASCADE)).status()["hosts"] == []


def test_a_calibration_is_known_by_the_hash_of_its_artefact(start: Start, connect: Connect) -> None:
    peer = connect(start())
    (family,) = peer.status()["families"]
    identity = family["calibration_identity"]
    assert identity["number"] is None, "it came with the models"
    assert identity["created"] in family["calibration"]
    manifest = Path(jetsel.zoo.__file__).parent / "starter" / "calibration" / coding.MANIFEST
    body = manifest.read_bytes().split(b'"body":', 1)[1].rsplit(b"}", 1)[0]
    assert identity["sha256"] == hashlib.sha256(body).hexdigest()
