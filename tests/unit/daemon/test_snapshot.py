"""What one configuration serves, read from real folders and loaded: families and models, and what stops a start."""

import threading
from pathlib import Path

import numpy as np
import pytest

from jetsel.base.config import Config, PolicySettings, ServerSettings
from jetsel.base.errors import ConfigError, JetselError, UnknownFamilyError
from jetsel.daemon.snapshot import Snapshot, load_snapshot, read_snapshot
from jetsel.daemon.status import family_status
from jetsel.engines import Backends
from jetsel.site.configured import default_family
from tests.unit.daemon.families import SIDE_PX, config_of, loaded, put_family

CATS: dict[str, object] = {"default_family": "cats"}
BATCH = np.zeros((1, 3, SIDE_PX, SIDE_PX), np.float32)


def refused(wanted: Config) -> str:
    with pytest.raises(ConfigError) as caught:
        read_snapshot(wanted)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


@pytest.fixture
def cats(tmp_path: Path) -> Path:
    return put_family(tmp_path / "cats", "cats", "cat-s", "cat-l")


@pytest.fixture
def dogs(tmp_path: Path) -> Path:
    return put_family(tmp_path / "dogs", "dogs", "dog-s", "dog-l")


def served(snapshot: Snapshot) -> dict[str, list[str]]:
    return {name: list(family.models) for name, family in snapshot.families.items()}


def test_every_family_of_the_folders_is_served_cheapest_model_first(cats: Path, dogs: Path) -> None:
    snapshot = read_snapshot(config_of(cats, dogs, models={"default_family": "dogs"}))
    assert served(snapshot) == {"cats": ["cat-s", "cat-l"], "dogs": ["dog-s", "dog-l"]}
    assert snapshot.family(None).name == "dogs"
    assert snapshot.family("cats").name == "cats"
    with pytest.raises(UnknownFamilyError, match="no family 'birds' is served: cats, dogs"):
        snapshot.family("birds")


@pytest.mark.parametrize(
    ("families", "default"),
    [
        (("starter", "cats"), "cats"),
        (("starter", "imagenet"), "imagenet"),
        (("starter", "imagenet", "cats"), "cats"),
        (("starter", "cats", "dogs"), "starter"),
        (("starter", "imagenet", "cats", "dogs"), "imagenet"),
    ],
)
def test_the_default_family_is_the_owners_where_there_is_one_and_else_jetsels_best(
    families: tuple[str, ...], default: str
) -> None:
    assert default_family(Config(), families) == default


@pytest.mark.parametrize(
    ("models", "policy", "said"),
    [
        ({}, {}, "models.default_family: there are several families (cats, dogs): set the default"),
        ({"only": ["cat-xl", "cat-s", "cat-m"]}, {}, "models.only: no folder has cat-m, cat-xl"),
        ({"backends": {"cat-q": "tensorrt"}}, {}, "models.backends: no folder has cat-q"),
        (
            CATS,
            {"default": "best"},
            "policy.default: family cats has no policy 'best'; it has single:cat-s",
        ),
        (CATS, {"fallback": "cat-xl"}, "policy.fallback: family cats has no model 'cat-xl'; it has cat-s, cat-l"),
        (CATS, {"fallback": "dog-s"}, "policy.fallback: family cats has no model 'dog-s'"),
    ],
)
def test_what_no_folder_or_family_has_is_refused(
    cats: Path, dogs: Path, models: dict[str, object], policy: dict[str, str], said: str
) -> None:
    assert refused(config_of(cats, dogs, models=models, policy=PolicySettings(**policy))).startswith(said)


def test_only_the_models_that_are_named_are_served(cats: Path, dogs: Path) -> None:
    assert served(read_snapshot(config_of(cats, dogs, models={"only": ["cat-l"]}))) == {"cats": ["cat-l"]}
    both = config_of(cats, dogs, models={"only": ["cat-l", "dog-s"], "default_family": "cats"})
    assert served(read_snapshot(both)) == {"cats": ["cat-l"], "dogs": ["dog-s"]}


def test_no_model_at_all_is_refused_with_every_reason(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "bad.json").write_text("{")
    said = refused(config_of(empty, tmp_path / "gone"))
    assert said.startswith(f"models.paths: no model in {empty}, {tmp_path / 'gone'}; ")
    assert "bad.json" in said
    assert "No such file" in said
    assert refused(config_of()).startswith("models.paths: no model in no folder")


def test_a_damaged_model_is_unavailable_with_its_reason_and_another_stands_in_for_it(cats: Path) -> None:
    (cats / "cat-l.onnx").write_bytes(b"damaged")
    snapshot = loaded(config_of(cats, policy=PolicySettings(default="single:cat-l", fallback="cat-l")))
    family = snapshot.families["cats"]
    assert (family.defaults.policy, family.defaults.fallback) == ("single:cat-s", "cat-s")
    assert family.defaults.because.startswith("single:cat-l needs cat-l; the most expensive")
    good, bad = family_status(family, 0, 0).models
    assert (good.state, good.reason) == ("ready", None)
    assert (bad.state, "sha256" in str(bad.reason)) == ("unavailable", True)
    snapshot.close()


def test_a_fallback_and_a_default_policy_are_asked_of_the_default_family_alone(cats: Path, dogs: Path) -> None:
    wanted = {"models": {"default_family": "cats"}, "policy": PolicySettings(default="single:cat-s", fallback="cat-s")}
    snapshot = read_snapshot(config_of(cats, dogs, **wanted))
    assert snapshot.families["cats"].defaults.fallback == "cat-s"
    assert snapshot.families["dogs"].defaults.fallback == "dog-l"
    assert snapshot.families["dogs"].defaults.policy == "single:dog-l"


def test_loaded_every_model_answers_on_the_backend_of_its_own(cats: Path) -> None:
    backends, told = Backends(), list[str]()
    snapshot = read_snapshot(config_of(cats, models={"backends": {"cat-s": "onnxruntime-hosted"}}))
    load_snapshot(snapshot, backends, lambda words, _: told.append(words), threading.Event())
    small, large = snapshot.engines
    assert small.caller_limiter is not None, "models in a host share its callers"
    assert large.caller_limiter is None
    assert small.infer(BATCH).logits.shape == large.infer(BATCH).logits.shape == (1, 6)
    assert [model.state for model in family_status(snapshot.families["cats"], 0, 0).models] == ["ready", "ready"]
    assert told == ["loading 1 of 2", "loading 2 of 2"]
    snapshot.close()
    backends.close()


def test_no_model_of_the_default_family_left_stops_the_start(cats: Path, dogs: Path) -> None:
    for weights in cats.glob("*.onnx"):
        weights.write_bytes(b"damaged")
    with pytest.raises(ConfigError, match=r"no model of the default family cats can run: .*sha256.*; .*sha256"):
        loaded(config_of(cats, dogs, models={"default_family": "cats"}))
    loaded(config_of(cats, dogs, models={"default_family": "dogs"})).close()


def test_the_next_snapshot_takes_over_what_is_the_same_and_the_last_frees_the_rest(cats: Path) -> None:
    first = loaded(config_of(cats))
    kept, replaced = first.engines
    put_family(cats, "cats", "cat-x", "cat-y", "cat-l")  # at another place cat-l is another matrix
    for name in ("cat-x", "cat-y"):
        (cats / f"{name}.json").unlink()
    second = loaded(config_of(cats), first)
    assert kept in second.engines
    assert replaced not in second.engines
    first.close(second)
    assert kept.infer(BATCH).logits.shape == (1, 6)
    with pytest.raises(JetselError, match="closed"):
        replaced.infer(BATCH)
    second.close()
    with pytest.raises(JetselError, match="closed"):
        kept.infer(BATCH)


def test_engines_made_for_other_threads_are_not_taken_over_and_the_workers_wait_for_the_next_start(cats: Path) -> None:
    first = loaded(config_of(cats, server=ServerSettings(workers=1)))
    second = loaded(config_of(cats, models={"threads": 2}, server=ServerSettings(workers=2)), first)
    assert not set(first.engines) & set(second.engines)
    assert second.workers == 1
    for snapshot in (first, second):
        snapshot.close()
