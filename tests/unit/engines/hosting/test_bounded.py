"""Programs that hang, flood, crash or leave others behind: each run ends, and nothing outlives it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from jetsel.engines.hosting.bounded import ERRORS_BYTES, OUTPUT_BYTES, run

LONG_S = 60.0  # longer than any of these runs: only a limit that does not work is felt
WAIT_S = 30.0


def shell(script: str, limit_s: float = LONG_S) -> tuple[int | None, bytes, bytes, bool]:
    ended = run(["/bin/sh", "-c", script], limit_s)
    return ended.status, ended.output, ended.errors, ended.is_too_long


def is_gone(pid: int) -> bool:
    """Whether no such process runs any more; one that nobody waited for is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_until_gone(pid: int) -> None:
    give_up = time.monotonic() + WAIT_S
    while not is_gone(pid):
        assert time.monotonic() < give_up, f"{pid} lives on"
        time.sleep(0.02)


def test_what_it_wrote_and_how_it_left_are_returned() -> None:
    assert shell("printf good; printf bad >&2; exit 3") == (3, b"good", b"bad", False)


def test_a_signal_is_a_negative_status() -> None:
    assert shell("kill -ILL $$")[0] == -signal.SIGILL


def test_one_that_hangs_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    status, output, _, _ = shell(f"sleep 1000 & echo $! > {tmp_path}/pid; printf begun; wait", limit_s=1.0)
    assert (status, output) == (None, b"begun")
    wait_until_gone(int((tmp_path / "pid").read_text()))


def test_one_that_closed_its_pipes_and_hangs_is_killed_too(tmp_path: Path) -> None:
    assert shell("exec >&- 2>&-; sleep 1000", limit_s=0.5)[0] is None


def test_what_it_leaves_behind_neither_holds_the_run_up_nor_lives_on(tmp_path: Path) -> None:
    began = time.monotonic()
    status, output, _, _ = shell(f"sleep 1000 & echo $! > {tmp_path}/pid; printf done")
    assert (status, output) == (0, b"done")
    assert time.monotonic() - began < LONG_S
    wait_until_gone(int((tmp_path / "pid").read_text()))


def test_output_without_end_is_cut_and_its_writer_killed() -> None:
    status, output, _, is_too_long = shell("yes")
    assert (status, len(output), is_too_long) == (None, OUTPUT_BYTES, True)


def test_output_of_just_the_limit_is_whole() -> None:
    status, output, _, is_too_long = shell(f"head -c {OUTPUT_BYTES} /dev/zero")
    assert (status, len(output), is_too_long) == (0, OUTPUT_BYTES, False)


def test_of_many_errors_the_end_is_kept() -> None:
    status, output, errors, is_too_long = shell("yes | head -c 3000000 >&2; printf last >&2; printf answer")
    assert (status, output, is_too_long) == (0, b"answer", False)
    assert len(errors) == ERRORS_BYTES
    assert errors.endswith(b"\nlast")


def test_it_has_nothing_to_read_and_stands_in_the_root_folder() -> None:
    assert shell("cat; pwd") == (0, b"/\n", b"", False)


def test_the_environment_is_the_one_given() -> None:
    assert run(["/usr/bin/env"], LONG_S, {"ONLY": "this"}).output == b"ONLY=this\n"


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        ("Traceback (most recent call last):\n  File x\nImportError: no  libx.so\n", "ImportError: no libx.so"),
        ("Unknown option: -I\nusage: python [option]\n", "Unknown option: -I"),
        ("", ""),
    ],
)
def test_the_line_that_says_most_is_found(errors: str, said: str) -> None:
    assert run(["/bin/sh", "-c", 'printf %s "$ERRORS" >&2'], LONG_S, {**os.environ, "ERRORS": errors}).words == said


def test_what_cannot_be_started_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run([str(tmp_path / "none")], LONG_S)
