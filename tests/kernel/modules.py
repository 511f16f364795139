"""In which order kernel modules load: each after those that it says it depends on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


def underscored(name: str) -> str:
    """Return a module's name as the kernel writes it, whether it was given as i2c-stub or i2c_stub."""
    return name.replace("-", "_")


def in_order(wanted: Iterable[str], files: Mapping[str, Path]) -> list[str]:
    """Return these modules and all that they need, dependencies first.

    wanted: names. files: the .ko of every module by its underscored name; KeyError where a needed one is not in there.
    """
    order: list[str] = []

    def add(name: str) -> None:
        if name in order:
            return
        said = DEPENDS.search(files[name].read_bytes())
        assert said is not None, f"{files[name]} is no kernel module"
        for needed in filter(None, said[1].decode().split(",")):
            add(underscored(needed))
        order.append(name)

    for name in wanted:
        add(underscored(name))
    return order
