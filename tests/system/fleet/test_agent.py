"""`jetsel agent run` beside a real daemon: plans are followed, tried out, and taken back where they are worse."""

from pathlib import Path

import pytest

from tests.system.daemons import Connect, Start, drawn, encoded
from tests.system.fleet.site import Site, fleet_config, put_pets, run_agent, state


@pytest.mark.slow
def test_a_plan_is_followed_and_a_bad_model_taken_back(
    start: Start, connect: Connect, site: Site, canary: Path, tmp_path: Path
) -> None:
    daemon = start(fleet_config(site, "one", canary), env=state(tmp_path))
    peer = connect(daemon)

    def served() -> dict[str, list[str]]:
        return {one["name"]: sorted(model["name"] for model in one["models"]) for one in peer.status()["families"]}

    assert list(served()) == ["starter"]
    said = run_agent(daemon, tmp_path)
    assert (said["plan"], said["trial"]["outcome"]) == (0, "waiting")
    site.plan("one", 1, "small")
    said = run_agent(daemon, tmp_path)
    assert (said["plan"], said["trial"]["outcome"]) == (1, "installed"), said
    assert served() == {"pets": ["small"]}
    site.plan("one", 2, "small", "large")
    said = run_agent(daemon, tmp_path)
    assert (said["plan"], said["trial"]["outcome"]) == (2, "installed"), said
    assert said["trial"]["before"]["pets"]["accuracy"] > 0.5
    assert served() == {"pets": ["large", "small"]}
    site.publish(put_pets(tmp_path / "bad", "small", "large", turned=("small", "large")))
    site.plan("one", 3, "small", "large")
    said = run_agent(daemon, tmp_path)
    assert (said["plan"], said["trial"]["outcome"]) == (2, "rolled-back"), said
    assert said["trial"]["served_s"] > 0
    assert served() == {"pets": ["large", "small"]}
    assert [line.plan for line in site.usage("one")] == [0, 1, 2, 2]


def test_what_is_told_is_what_has_been_answered_since_and_labels_only_where_the_owner_says_so(
    start: Start, connect: Connect, site: Site, tmp_path: Path
) -> None:
    daemon = start(fleet_config(site, "one", None, "[observe]\nclass_counts = true"), env=state(tmp_path))
    site.plan("one", 1, "small")
    run_agent(daemon, tmp_path)
    peer = connect(daemon)
    for _ in range(3):
        label = peer.classify(encoded(drawn(1), ".png"))["label"]
    assert peer.classify(b"no photograph")["code"] == "bad-image"
    (family,) = run_agent(daemon, tmp_path)["daemon"]["families"]
    assert (family["answers"], family["by_model"], family["classes"]) == (3, {"small": 3}, {label: 3})
    assert family["models"][0]["cost_ms"] > 0
    assert family["models"][0]["p95_ms"] > 0
    said = run_agent(daemon, tmp_path)["daemon"]
    assert (said["p95_ms"], said["families"][0]["models"][0]["p95_ms"]) == (None, None), "nothing was answered since"
    assert site.usage("one")[-1].daemon.requests == {"ok": 3, "bad-image": 1}
    assert daemon.stop() == 0
    again = start(fleet_config(site, "one", None), env=state(tmp_path))
    connect(again).classify(encoded(drawn(1), ".png"))
    (family,) = run_agent(again, tmp_path)["daemon"]["families"]
    assert (family["answers"], family["classes"]) == (1, None)
