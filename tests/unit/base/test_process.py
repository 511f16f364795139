"""The process's own memory, as the kernel counts it; a child Python imports nothing from the user's folder."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import jetsel
from jetsel.base.process import python_command

PROGRAM = """
import ctypes
from jetsel.base.process import resident_mb, return_large_blocks, freeze_and_trim

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]


def touched(count, size):
    blocks = [libc.malloc(size) for _ in range(count)]
    for block in blocks:
        ctypes.memset(block, 1, size)
    return blocks


return_large_blocks()
libc.free(touched(1, 20_000_000)[0])  # the first such free would raise glibc's threshold to that
before = resident_mb()
blocks = touched(20, 5_000_000)
for block in blocks[:-1]:
    libc.free(block)
print(resident_mb() - before)
blocks = touched(500, 100_000)  # small ones stay with malloc when they are freed, below one that is still held
for block in blocks[:-1]:
    libc.free(block)
kept = resident_mb()
freeze_and_trim()
print(kept - resident_mb())
"""


def test_what_was_freed_goes_back_to_the_system() -> None:
    command = [sys.executable, "-c", PROGRAM]  # nobody else works there, and allocation may be changed
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    of_large_messages_mb, of_loading_mb = map(float, done.stdout.split())
    assert of_loading_mb > 40
    assert of_large_messages_mb < 10


PLANTED = ("msgspec", "pip", "runpy", "jetsel", "encodings")


def run(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("words", [("jetsel", "status", "--help"), ("pip", "--version")])
def test_a_planted_module_does_not_run(tmp_path: Path, words: tuple[str, ...]) -> None:
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text("print('planted')\n")
    done = run(tmp_path, python_command(*words))
    assert done.returncode == 0, done.stderr
    assert "planted" not in done.stdout
    assert "planted" in run(tmp_path, [sys.executable, "-m", words[0]]).stdout, "the plain way runs it"


def test_it_has_the_arguments_the_standard_input_and_the_name_of_a_main_module(tmp_path: Path) -> None:
    package = tmp_path / "elsewhere"
    package.mkdir()
    (package / "shown.py").write_text("import sys\nprint(__name__, __spec__.name, sys.argv[1:], '' in sys.path)\n")
    command = ["env", f"PYTHONPATH={package}", *python_command("shown", "a b", "-c")]
    assert run(tmp_path, command).stdout.split(maxsplit=2) == ["__main__", "shown", "['a b', '-c'] False\n"]


def test_every_child_in_the_user_s_folder_is_started_by_it() -> None:
    package = Path(jetsel.__file__).parent
    sources = [path.read_text("utf-8") for path in package.rglob("*.py")]
    assert [source for source in sources if re.search(r'executable, "-m"', source) and 'cwd="/"' not in source] == []
