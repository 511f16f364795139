"""What a configuration serves: its families by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.base.config import Config, Models
from jetsel.base.errors import UnknownFamilyError
from jetsel.site.site import open_site
from tests.unit.daemon.families import put_family


def test_a_family_is_found_by_name_or_as_the_default_and_a_misspelt_one_is_corrected(tmp_path: Path) -> None:
    put_family(tmp_path / "cats", "cats", "s", "l")
    site = open_site(Config(models=Models(paths=[str(tmp_path / "cats")])))
    assert site.family(None).name == site.family("cats").name == "cats"
    with pytest.raises(UnknownFamilyError, match="did you mean cats"):
        site.family("cast")
