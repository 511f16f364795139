"""What a failure of the process that runs the models says of them, and what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.addons.fleet.agent.installing import Installer, ModelsRefusedError
from jetsel.addons.fleet.config import Fleet
from jetsel.addons.fleet.documents import Entry, Plan, PlannedFamily
from jetsel.base.config_text import parse
from jetsel.base.errors import JetselError, RepositoryError

TENSORRT = '[models]\nbackend = "tensorrt"\n[host]\nengines = "{}"'


@pytest.mark.parametrize(
    ("settings", "reserve_mb", "raised", "words"),
    [
        pytest.param("", 0, ModelsRefusedError, "small", id="models that fail"),
        pytest.param("", 1_000_000, RepositoryError, "free some space", id="a full disk"),
        pytest.param(
            TENSORRT.format("/dev/null/engines"),
            0,
            RepositoryError,
            "docs/fleet.md shows",
            id="another user's engines",
        ),
    ],
)
def test_models_that_fail_for_want_of_a_place_are_not_refused(
    tmp_path: Path, settings: str, reserve_mb: float, raised: type[JetselError], words: str
) -> None:
    fetched = tmp_path / "fetched"
    fetched.mkdir()
    (fetched / "small.json").write_text("{}")
    (tmp_path / "fleet").mkdir()
    entry = Entry(family="pets", version=1, sha256="0" * 64)
    plan = Plan(device="one", serial=1, families=(PlannedFamily(bundle=entry, models=("small",)),))
    installer = Installer(tmp_path / "fleet", parse(settings), Fleet(reserve_mb=reserve_mb), None)
    with pytest.raises(raised, match=words):
        installer.install(plan, [fetched])
