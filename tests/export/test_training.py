"""The commands from photographs to a published family, on a miniature: train, teach, export, measure."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from calibration.starter import export, measure, teach, train
from calibration.starter.train import Recipe
from jetsel.zoo import scan, verify


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run a command's main with these arguments."""

    def call(main: Callable[[], None], *arguments: object) -> None:
        monkeypatch.setattr(sys, "argv", ["command", *map(str, arguments)])
        main()

    return call


def test_from_photographs_to_a_measured_family(
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    run: Callable[..., None],
) -> None:
    monkeypatch.setitem(train.RECIPES, "s", Recipe(epochs=8, seed=2))
    monkeypatch.setitem(
        train.RECIPES,
        "xs",
        Recipe(epochs=4, seed=3, sides_px=((0.5, 48), (0.5, 64)), cutmix_share=0.5, teachers=("s",)),
    )
    monkeypatch.setattr(teach, "VIEWS", 3)  # fewer than the student's epochs, so that it sees one again
    work, out, trained = tmp_path / "work", tmp_path / "out", tmp_path / "trained"
    where = ("--data", data, "--work", work)
    run(train.main, "s", *where)
    published = ("--out", str(out), "--trained", str(trained), "--version", "2.1.0")
    with pytest.raises(SystemExit, match=r"run python -m calibration\.starter\.teach s first"):
        run(train.main, "xs", *where)
    with pytest.raises(SystemExit, match=r"run python -m calibration\.starter\.train s, then export it"):
        run(teach.main, "s", *where, "--published", out)
    export.main(["s", *map(str, where), *published])
    run(teach.main, "s", *where, "--published", out)
    run(train.main, "xs", *where)
    export.main(["xs", *map(str, where), *published])

    zoo = scan([out])
    assert zoo.broken == ()
    models = zoo.families["starter"].models
    assert [model.manifest.name for model in models] == ["xs", "s"]
    for model in models:
        verify(model)
    assert models[0].manifest.version == "2.1.0"
    assert "distilled from s: 4 epochs" in models[0].manifest.source

    capsys.readouterr()
    options = ["--held-out", "--data", data, "--models", out, "--trained", trained, "--rounds", 2]
    measure.main([str(option) for option in options])
    printed = capsys.readouterr().out
    cells = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ") for line in printed.splitlines()[2:4]}
    assert list(cells) == ["xs", "s"]
    assert "80 images (held out of training)" in printed
    for name, row in cells.items():
        log = json.loads((trained / f"{name}.json").read_text())["log"]
        # The training read the photographs by another decoder, and float32 weights: two of 80 answers may differ.
        assert float(row[1]) == pytest.approx(100 * log[-1]["held_out_top1"], abs=2.5)
