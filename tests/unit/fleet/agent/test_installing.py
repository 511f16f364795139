"""What a failure of the process that runs the models says of them, and what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.config import parse
from jetsel.errors import JetselError, RepositoryError
from jetsel.fleet.agent.installing import Installer, ModelsRefusedError
from jetsel.fleet.documents import Entry, Plan, PlannedFamily


@pytest.mark.parametrize(("reserve_mb", "raised"), [(0, ModelsRefusedError), (1_000_000, RepositoryError)])
def test_models_that_fail_on_a_full_disk_are_not_refused(
    tmp_path: Path, reserve_mb: int, raised: type[JetselError]
) -> None:
    fetched = tmp_path / "fetched"
    fetched.mkdir()
    (fetched / "small.json").write_text("{}")
    (tmp_path / "fleet").mkdir()
    entry = Entry(family="pets", version=1, sha256="0" * 64)
    plan = Plan(device="one", serial=1, families=(PlannedFamily(bundle=entry, models=("small",)),))
    installer = Installer(tmp_path / "fleet", parse(f"[fleet]\nreserve_mb = {reserve_mb}"), None)
    with pytest.raises(raised):
        installer.install(plan, [fetched])
