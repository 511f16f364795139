"""Every error has a code of its own that stays, and docs/protocol.md says of each whether to send again."""

import importlib
import pkgutil
import re
import shlex
import sys
from pathlib import Path

import jetsel
from jetsel.base import errors
from jetsel.base.errors import BY_CODE, JetselError, pip_install

PROTOCOL = Path(__file__).parents[3] / "docs" / "protocol.md"


def every_class(base: type[JetselError] = JetselError) -> list[type[JetselError]]:
    return [base, *(found for child in base.__subclasses__() for found in every_class(child))]


def test_an_error_of_another_file_travels_under_a_known_code() -> None:
    for module in pkgutil.walk_packages(jetsel.__path__, "jetsel."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as missing:
                if missing.name not in ("torch", "torch_pruning"):  # what only jetsel[export] brings
                    raise
    for kind in every_class():
        assert kind.code in BY_CODE, kind
        if not kind.__module__.startswith("jetsel.client."):  # what a client raises for itself is never sent
            assert kind.retry is BY_CODE[kind.code].retry, kind


def test_two_pages_list_every_code_with_its_retry() -> None:
    """Clients in other languages hold these: a code is never renamed, and its `retry` never changes."""
    pages = "".join(page.read_text(encoding="utf-8") for page in (PROTOCOL, PROTOCOL.with_name("python.md")))
    rows = re.findall(r"^\| `([a-z-]+)` \| (true|false) \|", pages, re.MULTILINE)
    kinds = [kind for kind in every_class() if kind.__module__ == errors.__name__ and "code" in vars(kind)]
    assert sorted(code for code, _ in rows) == sorted(kind.code for kind in kinds), "each once"
    assert {code: retry == "true" for code, retry in rows} == {code: kind.retry for code, kind in BY_CODE.items()}


def test_an_extra_is_installed_for_the_python_that_lacks_it() -> None:
    *command, extra = shlex.split(pip_install("export"))
    assert (command, extra) == ([sys.executable, "-m", "pip", "install"], "jetsel[export]")
