"""`jetsel calibrate --if-changed`: what counts as a change, and that only what came to its end is remembered."""

from __future__ import annotations

import os
from pathlib import Path

from jetsel.calibrate.unchanged import fingerprint, is_known, remember

MODELS = {"xs": "0" * 64, "xl": "1" * 64}


def photographs(folder: Path, count: int = 3) -> list[tuple[Path, str | None]]:
    paths = [folder / f"{number}.jpg" for number in range(count)]
    for path in paths:
        path.write_bytes(path.name.encode())
    return [(path, "tabby") for path in paths]


def test_each_kind_of_change_is_one_and_an_order_is_none(tmp_path: Path) -> None:
    shown = photographs(tmp_path)
    seen = {fingerprint(shown, models, "options") for models in (MODELS, dict(reversed(MODELS.items())))}
    assert len(seen) == 1
    seen.add(fingerprint(shown[1:], MODELS, "options"))
    seen.add(fingerprint([(shown[0][0], "dog"), *shown[1:]], MODELS, "options"))
    seen.add(fingerprint(shown, {**MODELS, "xl": "2" * 64}, "options"))
    seen.add(fingerprint(shown, MODELS, "other options"))
    os.utime(shown[0][0], ns=(1, 1))
    seen.add(fingerprint(shown, MODELS, "options"))
    shown[0][0].unlink()
    seen.add(fingerprint(shown, MODELS, "options"))
    assert len(seen) == 7


def test_only_what_was_remembered_is_known(tmp_path: Path) -> None:
    recording = tmp_path / "pets.sqlite"
    assert not is_known(recording, "abc")
    remember(recording, "abc")
    assert is_known(recording, "abc")
    assert not is_known(recording, "abd")
    assert not is_known(tmp_path / "others.sqlite", "abc")
