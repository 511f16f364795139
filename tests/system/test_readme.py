"""README.md says what is so: its program runs."""

import re
import sys
from pathlib import Path

import pytest

from tests.system.daemons import Daemon, drawn, encoded
from tests.system.test_protocol_doc import ROOT, run


def test_the_program_in_the_readme_runs(shared_daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "cat.jpg").write_bytes(encoded(drawn()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JETSEL_ENDPOINT", shared_daemon.endpoint)
    done = run(sys.executable, "-c", program)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1
