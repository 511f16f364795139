"""Every error has a code of its own that stays, and docs/protocol.md says of each whether to send again."""

from __future__ import annotations

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

# Clients in other languages hold these: a code is never renamed, and its `retry` never changes.
RETRY = {
    "internal": False,
    "config": False,
    "bad-request": False,
    "unsupported-version": False,
    "unknown-kind": False,
    "bad-image": False,
    "image-too-large": False,
    "unknown-model": False,
    "unknown-family": False,
    "unknown-policy": False,
    "loading": True,
    "busy": True,
    "over-limit": True,
    "deadline": False,
    "in-doubt": False,
    "unmet-requirements": False,
    "model-unavailable": False,
    "engine-died": True,
    "not-allowed": False,
    "reload-failed": False,
    "shutting-down": True,
    "no-daemon": True,
    "no-reply": True,
    "bad-model": False,
    "download-failed": True,
    "bad-power": False,
    "bad-calibration": False,
    "bad-repository": False,
}


def every_class(base: type[JetselError] = JetselError) -> list[type[JetselError]]:
    return [base, *(found for child in base.__subclasses__() for found in every_class(child))]


def test_the_codes_and_their_retry_are_those_that_clients_know() -> None:
    assert {code: kind.retry for code, kind in BY_CODE.items()} == RETRY


def test_no_two_errors_of_the_protocol_share_a_code() -> None:
    kinds = [kind for kind in every_class() if kind.__module__ == errors.__name__ and "code" in vars(kind)]
    codes = [kind.code for kind in kinds]
    assert sorted(codes) == sorted(set(codes))
    assert {kind.code: kind for kind in kinds} == BY_CODE


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
    pages = "".join(page.read_text(encoding="utf-8") for page in (PROTOCOL, PROTOCOL.with_name("python.md")))
    rows = re.findall(r"^\| `([a-z-]+)` \| (true|false) \|", pages, re.MULTILINE)
    assert len(rows) == len(dict(rows)), "a code stands there twice"
    assert {code: retry == "true" for code, retry in rows} == RETRY


def test_an_extra_is_installed_for_the_python_that_lacks_it() -> None:
    *command, extra = shlex.split(pip_install("export"))
    assert (command, extra) == ([sys.executable, "-m", "pip", "install"], "jetsel[export]")
