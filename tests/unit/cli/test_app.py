"""What an earlier version's command line knew is refused with what to do instead."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from jetsel.cli.app import GONE, app


@pytest.mark.parametrize(
    "words", [("keys", "new"), ("classify", "--key=x", "cat.jpg"), ("status", "--server-key", "y")]
)
def test_commands_and_options_that_went_say_what_to_do_instead(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert any(f"no {word} any more" in done.output and instead in done.output for word, instead in GONE.items())
