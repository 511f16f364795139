"""What one configuration serves, built from real folders: which families and models, and what stops the start."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from jetsel.config import Config, Models, OwnPolicy, Policy, Server
from jetsel.daemon.generation import Generation, build
from jetsel.engines import Backends
from jetsel.engines.hosted import HostedEngine
from jetsel.engines.onnx import OnnxEngine
from jetsel.errors import ConfigError, JetselError, UnknownFamilyError
from tests.unit.daemon.families import SIDE_PX, put_family

BATCH = np.zeros((1, 3, SIDE_PX, SIDE_PX), np.float32)


def config(*folders: Path, models: dict[str, object] | None = None, **sections: object) -> Config:
    chosen = Models(starter=False, paths=[str(folder) for folder in folders], **(models or {}))  # type: ignore[arg-type]
    return Config(models=chosen, **sections)  # type: ignore[arg-type]


def refused(wanted: Config) -> str:
    with pytest.raises(ConfigError) as caught:
        build(wanted)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def loaded(wanted: Config) -> Generation:
    generation = build(wanted)
    generation.load(Backends())
    return generation


@pytest.fixture
def cats(tmp_path: Path) -> Path:
    return put_family(tmp_path / "cats", "cats", "cat-s", "cat-l")


@pytest.fixture
def dogs(tmp_path: Path) -> Path:
    return put_family(tmp_path / "dogs", "dogs", "dog-s", "dog-l")


def served(generation: Generation) -> dict[str, list[str]]:
    return {name: list(family.models) for name, family in generation.families.items()}


def test_every_family_of_the_folders_is_served_cheapest_model_first(cats: Path, dogs: Path) -> None:
    generation = build(config(cats, dogs, models={"default_family": "dogs"}))
    assert served(generation) == {"cats": ["cat-s", "cat-l"], "dogs": ["dog-s", "dog-l"]}
    assert generation.family(None).name == "dogs"
    assert generation.family("cats").name == "cats"
    with pytest.raises(UnknownFamilyError, match="no family 'birds' is served: cats, dogs"):
        generation.family("birds")
    assert not generation.ready


def test_the_limits_and_the_workers_are_the_configuration_s(cats: Path) -> None:
    server = Server(workers=3, max_image_mb=1.5, max_image_megapixels=0.25)
    generation = build(config(cats, server=server))
    assert generation.workers == 3
    assert (generation.limits.max_bytes, generation.limits.max_pixels) == (1_500_000, 250_000)


def test_the_only_family_is_the_default(cats: Path) -> None:
    assert build(config(cats)).default_family == "cats"


def test_of_several_families_the_starter_is_the_default(cats: Path, tmp_path: Path) -> None:
    starter = put_family(tmp_path / "starter", "starter", "xs")
    assert build(config(cats, starter)).default_family == "starter"


def test_of_several_families_none_of_which_is_the_starter_one_must_be_named(cats: Path, dogs: Path) -> None:
    assert refused(config(cats, dogs)).startswith("models.default_family: several families (cats, dogs) and none named")


def test_an_unknown_default_family_is_refused_with_those_that_were_found(cats: Path) -> None:
    said = refused(config(cats, models={"default_family": "birds"}))
    assert said == "models.default_family: there is no family 'birds'; found: cats"


def test_only_the_models_that_are_named_are_served(cats: Path, dogs: Path) -> None:
    assert served(build(config(cats, dogs, models={"only": ["cat-l"]}))) == {"cats": ["cat-l"]}
    both = config(cats, dogs, models={"only": ["cat-l", "dog-s"], "default_family": "cats"})
    assert served(build(both)) == {"cats": ["cat-l"], "dogs": ["dog-s"]}


def test_a_name_in_only_that_no_folder_has_is_refused(cats: Path) -> None:
    assert "models.only: no folder has cat-m, cat-xl" in refused(
        config(cats, models={"only": ["cat-xl", "cat-s", "cat-m"]})
    )


def test_no_model_at_all_is_refused_with_every_reason(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "bad.json").write_text("{")
    said = refused(config(empty, tmp_path / "gone"))
    assert said.startswith(f"models.paths: no model in {empty}, {tmp_path / 'gone'}; ")
    assert "bad.json" in said
    assert "No such file" in said
    assert refused(config()).startswith("models.paths: no model in no folder")


def test_a_broken_manifest_is_listed_and_the_rest_is_served(cats: Path) -> None:
    (cats / "cat-m.json").write_text("{")
    generation = build(config(cats))
    assert served(generation) == {"cats": ["cat-s", "cat-l"]}
    (line,) = generation.broken
    assert str(cats / "cat-m.json") in line


def test_a_policy_of_the_owner_s_belongs_to_the_family_of_its_models(cats: Path, dogs: Path) -> None:
    own = {"quick": OwnPolicy(["cat-s", "cat-l"], [0.5])}
    generation = build(config(cats, dogs, models={"default_family": "dogs"}, policies=own))
    for criterion in ("top1", "top5"):
        assert "quick" in generation.families["cats"].policies[criterion]
        assert "quick" not in generation.families["dogs"].policies[criterion]


def test_a_policy_that_mixes_families_is_refused(cats: Path, dogs: Path) -> None:
    own = {"mixed": OwnPolicy(["cat-s", "dog-l"], [0.5])}
    said = refused(config(cats, dogs, models={"default_family": "dogs"}, policies=own))
    assert said.startswith("policies.mixed.models mixes families (cat-s of cats, dog-l of dogs)")


def test_a_policy_with_an_unknown_model_is_refused(cats: Path) -> None:
    own = {"odd": OwnPolicy(["cat-s", "cat-xl"], [0.5])}
    assert refused(config(cats, policies=own)).startswith("policies.odd.models: no family has cat-xl")


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (Policy(default="best"), "policy.default: family cats has no policy 'best'; it has single:cat-s, single:cat-l"),
        (Policy(default="cascade"), "policy.default: family cats has no policy 'cascade'"),
        (Policy(fallback="cat-xl"), "policy.fallback: family cats has no model 'cat-xl'; it has cat-s, cat-l"),
    ],
)
def test_a_default_that_the_family_has_not_is_refused(cats: Path, policy: Policy, said: str) -> None:
    assert refused(config(cats, policy=policy)).startswith(said)


def test_loaded_every_model_answers(cats: Path) -> None:
    generation = loaded(config(cats))
    assert generation.ready
    lanes = generation.families["cats"].driver.lanes
    for lane in lanes.values():
        assert lane.engine is not None
        assert lane.engine.infer(BATCH).logits.shape == (1, 6)
        assert lane.unavailable is None
    assert [model.state for model in generation.families["cats"].status(0, 0).models] == ["ready", "ready"]
    generation.close()


def test_a_damaged_model_is_unavailable_with_its_reason_and_the_rest_serve(cats: Path) -> None:
    weights = cats / "cat-l.onnx"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\xff")
    generation = loaded(config(cats))
    good, bad = generation.families["cats"].status(0, 0).models
    assert (good.state, good.reason) == ("ready", None)
    assert (bad.name, bad.state) == ("cat-l", "unavailable")
    assert bad.reason is not None
    assert "sha256" in bad.reason
    generation.close()


def test_a_model_that_answers_another_number_of_classes_is_unavailable(cats: Path) -> None:
    put_family(cats, "cats", "cat-s", classes=5)
    generation = loaded(config(cats))
    lane = generation.families["cats"].driver.lanes["cat-s"]
    assert lane.engine is None
    assert "do not belong together" in str(lane.unavailable)
    generation.close()


def test_each_model_may_have_a_backend_of_its_own(cats: Path) -> None:
    backends = Backends()
    generation = build(config(cats, models={"backends": {"cat-s": "onnxruntime-hosted"}}))
    generation.load(backends)
    small, large = (generation.families["cats"].driver.lanes[name].engine for name in ("cat-s", "cat-l"))
    assert isinstance(small, HostedEngine)
    assert isinstance(large, OnnxEngine)
    assert small.infer(BATCH).logits.shape == large.infer(BATCH).logits.shape
    generation.close()
    backends.close()


def test_a_backend_for_a_model_that_is_nowhere_is_refused(cats: Path) -> None:
    assert refused(config(cats, models={"backends": {"cat-q": "tensorrt"}})).startswith(
        "models.backends: no folder has cat-q"
    )


def test_no_model_of_the_default_family_left_stops_the_start(cats: Path, dogs: Path) -> None:
    for weights in cats.glob("*.onnx"):
        weights.write_bytes(b"damaged")
    generation = build(config(cats, dogs, models={"default_family": "cats"}))
    with pytest.raises(ConfigError, match=r"no model of the default family cats can run: .*sha256.*; .*sha256"):
        generation.load(Backends())
    assert not generation.ready
    generation.close()
    other = loaded(config(cats, dogs, models={"default_family": "dogs"}))
    assert other.ready
    other.close()


def test_the_next_generation_takes_over_what_is_the_same_and_the_last_frees_the_rest(cats: Path) -> None:
    first = loaded(config(cats))
    kept, replaced = (first.families["cats"].driver.lanes[name].engine for name in ("cat-s", "cat-l"))
    assert kept is not None
    assert replaced is not None
    put_family(cats, "cats", "cat-x", "cat-y", "cat-l")  # at another place cat-l is another matrix
    for name in ("cat-x", "cat-y"):
        (cats / f"{name}.json").unlink()
    second = build(config(cats))
    second.load(Backends(), first)
    lanes = second.families["cats"].driver.lanes
    assert lanes["cat-s"].engine is kept
    assert lanes["cat-l"].engine is not replaced
    first.close(second)
    assert kept.infer(BATCH).logits.shape == (1, 6)
    with pytest.raises(JetselError, match="closed"):
        replaced.infer(BATCH)
    second.close()
    with pytest.raises(JetselError, match="closed"):
        kept.infer(BATCH)


def unavailable(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The models that the log tells of as unavailable."""
    return [r.fields["model"] for r in caplog.records if getattr(r, "event", None) == "model-unavailable"]


def test_the_log_tells_of_models_that_do_not_load_only_where_they_are_to_serve(
    cats: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = loaded(config(cats, models={"threads": 1}))
    (cats / "cat-s.onnx").write_bytes(b"damaged")
    second = build(config(cats, models={"threads": 2}))  # so it is to be loaded anew
    with pytest.raises(ConfigError, match="cat-s"):
        second.load(Backends(), first)
    assert unavailable(caplog) == [], "it goes on serving as it was loaded"
    for generation in (first, second):
        generation.close()
    loaded(config(cats)).close()
    assert unavailable(caplog) == ["cat-s"]


@pytest.mark.parametrize(("threads", "workers"), [(2, 1), (1, 2)])
def test_engines_made_for_other_settings_are_not_taken_over(cats: Path, threads: int, workers: int) -> None:
    first = loaded(config(cats, models={"threads": 1}, server=Server(workers=1)))
    second = build(config(cats, models={"threads": threads}, server=Server(workers=workers)))
    second.load(Backends(), first)
    for name, lane in second.families["cats"].driver.lanes.items():
        assert lane.engine is not first.families["cats"].driver.lanes[name].engine
    for generation in (first, second):
        generation.close()


def test_a_retired_generation_waits_for_its_requests_and_takes_no_more(cats: Path) -> None:
    generation = build(config(cats))
    assert generation.enter()
    assert generation.enter()
    retiring = threading.Thread(target=generation.retire)
    retiring.start()
    generation.leave()
    retiring.join(0.05)
    assert retiring.is_alive(), "one request is in it still"
    assert not generation.enter()
    generation.leave()
    retiring.join(60)
    assert not retiring.is_alive()


def test_a_fallback_and_a_default_policy_are_asked_of_the_default_family_alone(cats: Path, dogs: Path) -> None:
    wanted = {"models": {"default_family": "cats"}, "policy": Policy(default="single:cat-s", fallback="cat-s")}
    generation = build(config(cats, dogs, **wanted))
    assert generation.families["cats"].fallback == "cat-s"
    assert generation.families["dogs"].fallback == "dog-l"
    assert generation.families["dogs"].default_policy["top1"] == "single:dog-l"
    said = refused(config(cats, dogs, models={"default_family": "dogs"}, policy=Policy(fallback="cat-s")))
    assert said.startswith("policy.fallback: family dogs has no model 'cat-s'")


def test_a_policy_of_models_that_are_not_served_is_refused(cats: Path) -> None:
    own = {"quick": OwnPolicy(models=["cat-s", "cat-l"], thresholds=[0.5])}
    assert refused(config(cats, models={"only": ["cat-l"]}, policies=own)) == (
        "policies.quick.models: no family has cat-s; see: jetsel models list"
    )


@pytest.mark.parametrize("name", ["chain", "chain-right", "cascade", "single:cat-s"])
def test_a_policy_that_would_hide_one_of_ours_is_refused(cats: Path, name: str) -> None:
    said = refused(config(cats, policies={name: OwnPolicy(models=["cat-s"])}))
    assert said == f"policies.{name}: jetsel has a policy of this name; example: [policies.quick]"
