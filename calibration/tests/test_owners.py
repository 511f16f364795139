"""The owners' sets: how images are halved, how turns are pooled, the pages, and the whole way on drawn images."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from calibration.owners.__main__ import OUT, main
from calibration.owners.halves import Labelled, halves, listed
from calibration.owners.table import DEFAULT, HINDSIGHT, README, Share, kept, pooled, readme_with, results_page, rows
from jetsel.zoo import STARTER

COLOURS = {"blue": (200, 40, 40), "red": (40, 40, 200)}


def draw(folder: Path, each: int, seed: int) -> Path:
    """Write images of two classes, each of a colour with noise of its own; every fourth is the one before, brighter."""
    noise = np.random.default_rng(seed)
    for label, colour in COLOURS.items():
        (folder / label).mkdir(parents=True)
        for number in range(each):
            if number % 4 != 3:
                coarse = np.clip(colour + noise.normal(0, 60, (8, 8, 3)), 0, 255).astype(np.uint8)
                image = cv2.resize(coarse, (80, 80), interpolation=cv2.INTER_CUBIC)
            shown = cv2.add(image, (5, 5, 5, 0)) if number % 4 == 3 else image
            assert cv2.imwrite(str(folder / label / f"{number:03}.png"), shown)
    return folder


def test_halves_share_no_source_and_have_each_class(tmp_path: Path) -> None:
    images = listed(draw(tmp_path / "images", 16, seed=1))
    first, second = halves(images, seed=1)
    assert sorted(first + second) == images
    assert Counter(label for _, label in first) == {"blue": 8, "red": 8}
    for path, _ in images[3::4]:
        assert (path in chosen(first)) == (path.with_stem(f"{int(path.stem) - 1:03}") in chosen(first))
    assert halves(images, seed=1) == (first, second)
    assert chosen(halves(images, seed=2)[0]) != chosen(first)


def chosen(side: list[Labelled]) -> set[Path]:
    return {path for path, _ in side}


def test_pooled_shares_have_the_interval_of_their_sum() -> None:
    found = pooled([Share(0.8, 0.5, 0.9), Share(0.9, 0.5, 1.0)], [300, 100])
    assert found == pytest.approx((0.825, 0.825 - np.hypot(0.225, 0.1), 0.825 + np.hypot(0.075, 0.025)))


def turn(images: int, default: str, a: float, b: float, levels: dict[float, tuple[float, float]]) -> dict[str, Any]:
    """A turn with the models a and b, right on these shares in 1 and 2 ms. levels: share answered and share wrong."""
    times_ms = {"single:a": (a, 1.0), "single:b": (b, 2.0), "cascade": (a, 1.5), "oracle": (1.0, 1.0)}
    return {
        "images": images,
        "default": default,
        "best_single": "single:b",
        "results": {
            name: {"right": [right, right, right], "time_ms": ms, "energy_mj": None}
            for name, (right, ms) in times_ms.items()
        },
        "promises": [
            {"wrong_at_most": level, "answered": answered, "wrong": wrong, "wrong_interval": {"low": 0.0, "high": 0.1}}
            for level, (answered, wrong) in levels.items()
        ],
    }


def test_each_turn_gives_its_own_default_and_hindsight_is_of_all_turns() -> None:
    turns = [turn(30, "cascade", 0.6, 0.8, {}), turn(10, "single:b", 0.9, 0.2, {})]
    found = rows(turns)
    assert found[DEFAULT].names == ["cascade", "b"]
    assert (found[DEFAULT].right.share, found[DEFAULT].time_ms) == pytest.approx((0.5, 1.625))
    assert found[HINDSIGHT].names == ["a"]
    assert found[HINDSIGHT].energy_mj is None
    assert kept(turns) == "nothing is promised"


def test_a_promise_of_every_turn_is_weighed_by_the_images_that_it_answered() -> None:
    turns = [
        turn(30, "cascade", 0.6, 0.8, {0.02: (0.4, 0.0), 0.1: (0.5, 0.04)}),
        turn(10, "cascade", 0.6, 0.8, {0.05: (0.4, 0.0), 0.1: (0.5, 0.08)}),
    ]
    said = kept(turns)
    assert said.startswith("at most 10 % wrong: answered 50.0 %, of these wrong 5.0 %")


def test_the_pages_have_the_tables_of_the_results() -> None:
    results = json.loads((OUT / "results.json").read_text(encoding="utf-8"))
    assert (OUT / "RESULTS.md").read_text(encoding="utf-8") == results_page(results)
    readme = README.read_text(encoding="utf-8")
    assert readme_with(readme, results) == readme


@pytest.fixture(scope="module")
def owned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a set in a tar, other images of it, and the two fastest models of the starter family."""
    folder = tmp_path_factory.mktemp("owned")
    (folder / "models").mkdir()
    for name in ("labels.tsv", "xs.json", "xs.onnx", "s.json", "s.onnx"):
        shutil.copy(STARTER / name, folder / "models")
    with tarfile.open(folder / "owners.tar", "w") as tar:
        for part, each, seed in (("train", 12, 1), ("calibrate", 24, 2)):
            tar.add(draw(folder / part, each, seed), f"colours/{part}")
    draw(folder / "test/colours", 8, seed=3)
    return folder


def whole_way(owned: Path, folder: Path, *more: str) -> dict[str, Any]:
    """Run the command, check that its page has its results, and return those of the set."""
    words = [str(owned / "owners.tar"), "--backbone", "starter", "--models", str(owned / "models"), *more]
    main([*words, "--work", str(folder / "work"), "--out", str(folder)])
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert (folder / "RESULTS.md").read_text(encoding="utf-8") == results_page(results)
    found: dict[str, Any] = results["sets"]["colours"]
    return found


@pytest.mark.slow
def test_the_whole_way_by_halves_in_turns(owned: Path, tmp_path: Path) -> None:
    found = whole_way(owned, tmp_path)
    assert (found["classes"], found["trained_on"], found["calibrated_on"]) == (2, 24, 48)
    assert [turn["images"] for turn in found["turns"]] == [24, 24]
    assert rows(found["turns"])[DEFAULT].right.share > 0.9
    with pytest.raises(SystemExit, match="exists already"):
        whole_way(owned, tmp_path)


@pytest.mark.slow
def test_other_images_are_evaluated_after_calibrating_on_all(owned: Path, tmp_path: Path) -> None:
    found = whole_way(owned, tmp_path, "--test", str(owned / "test"))
    assert (found["calibrated_on"], [turn["images"] for turn in found["turns"]]) == (48, [16])
