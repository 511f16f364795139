"""What of the edge's section is refused before anything is sent to a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.base.config_text import parse
from jetsel.base.errors import ConfigError
from jetsel.edge.models import open_edge
from jetsel.zoo import STARTER, scan


def test_a_token_that_every_user_may_read_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o644)
    config = parse(f'[edge]\nurl = "http://edge"\ntoken_file = "{token}"\n[edge.models.xl]\nremote = "starter.xl"')
    with pytest.raises(ConfigError, match=r"edge\.token_file.*chmod o-rwx"):
        open_edge(config, scan([STARTER]).families["starter"])
