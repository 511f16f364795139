"""`jetsel doctor`: check everything that serving needs, and print how to repair what fails."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jetsel.cli.options import ConfigFile, Json, print_json

if TYPE_CHECKING:
    from jetsel.cli.checks import Finding, Subject

    Check = Callable[[Subject], Iterable[Finding]]

STYLES = {"ok": "green", "info": "dim", "warning": "yellow", "failed": "bold red"}


def doctor(config: ConfigFile = None, json: Json = False) -> None:
    """Check the whole installation, and print how to repair what fails. Nothing is changed.

    The exit status is 1 if a check failed; warnings do not count.
    """
    from jetsel.cli.checks import board, daemon, installation, models, tensorrt

    checks = {"installation": installation, "board": board, "models": models, "TensorRT": tensorrt, "daemon": daemon}
    findings = examine(subject_of(config), checks)
    if json:
        with contextlib.redirect_stdout(sys.stderr):  # keeps a library's output out of the JSON
            printed = list(findings)
        print_json([{"section": section, **finding._asdict()} for section, finding in printed])
    else:
        printed = list(_print_each(findings))
    if any(finding.state == "failed" for _, finding in printed):
        raise typer.Exit(1)


def subject_of(given: Path | None) -> Subject:
    """Return the installation to check. given: --config. An unreadable configuration becomes its `fault`."""
    from jetsel.base.config import Config
    from jetsel.base.errors import ConfigError
    from jetsel.cli.checks import Subject
    from jetsel.site import config_file

    path = config_file.locate(given)
    try:
        return Subject(path, config_file.read(path))
    except ConfigError as error:
        return Subject(path, Config(), fault=str(error))


def examine(subject: Subject, checks: Mapping[str, Check]) -> Iterator[tuple[str, Finding]]:
    """Yield each check's findings with the name of its section; a check that raises an error becomes a finding too."""
    from jetsel.base.errors import JetselError
    from jetsel.cli.checks import Finding

    for section, check in checks.items():
        try:
            for finding in check(subject):
                yield section, finding
        except (ImportError, OSError, JetselError) as error:  # noqa: PERF203  # only five checks
            yield section, Finding("check", "failed", str(error), "first repair this error, or the failures above it")


def _print_each(findings: Iterable[tuple[str, Finding]]) -> Iterator[tuple[str, Finding]]:
    """Print and yield each finding at once, because later checks may be slow or hang."""
    from rich.text import Text

    from jetsel.cli.terminal import console

    out = console()
    for section, group in groupby(findings, key=itemgetter(0)):
        out.print(Text(section, style="bold"))
        for _, finding in group:
            state = Text(f"  {finding.state:<9}", style=STYLES[finding.state])
            out.print(state + Text(f"{finding.name}: {finding.said}"), soft_wrap=True)
            if finding.repair is not None:
                out.print(Text(f"{'':11}repair: {finding.repair}"), soft_wrap=True)
            yield section, finding
