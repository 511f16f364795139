"""The configured edge, asked without a daemon."""

from __future__ import annotations

import contextlib
import logging
import queue
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from jetsel.base.errors import ConfigError, JetselError, ModelUnavailableError
from jetsel.cli import settings
from jetsel.daemon.snapshot import default_family
from jetsel.edge.messages import REPAIRS
from jetsel.edge.models import open_edge
from jetsel.zoo import model_folders, scan

if TYPE_CHECKING:
    from jetsel.base.config import Config
    from jetsel.edge.runner import Edge, EdgeAnswer, Photograph
    from jetsel.zoo import Family

REACHED_S = 15.0
POLL_S = 0.05


@contextlib.contextmanager
def opened(config: Path | None) -> Iterator[tuple[Config, Family, Edge]]:
    """Open the edge that the configuration names, and wait until it can be asked.

    Raises ConfigError where none is named, ModelUnavailableError where it cannot be asked.
    """
    logging.getLogger("jetsel").addHandler(logging.NullHandler())  # what the edge logs is in the command's own error
    values = settings.read(settings.locate(config))
    zoo = scan(model_folders(values.models))
    name = values.edge.family or default_family(values, list(zoo.families))
    if name not in zoo.families:
        raise ConfigError(f"edge.family: there is no family {name!r}; found: {', '.join(zoo.families)}")
    edge = open_edge(values, zoo.families[name])
    if edge is None:
        raise ConfigError('edge.url: name the edge, as in url = "http://edge.local:8000", and allow that it is asked')
    try:
        until_s = time.monotonic() + REACHED_S
        while (reason := edge.status().reason) is not None:
            if time.monotonic() > until_s or any(repair in reason for repair in REPAIRS.values()):
                raise ModelUnavailableError(f"the edge cannot be asked: {reason}; correct [edge], or start the server")
            time.sleep(POLL_S)
        yield values, zoo.families[name], edge
    finally:
        edge.close()


def check_models(edge: Edge, *models: str) -> None:
    """Raise ModelUnavailableError if the edge cannot be asked for one of its models."""
    reasons = [reason for model in models if (reason := edge.unavailable(model)) is not None]
    if reasons:
        raise ModelUnavailableError("; ".join(reasons))


def ask(edge: Edge, model: str, photograph: Photograph, patience_ms: float) -> EdgeAnswer | JetselError:
    """Ask one model, and wait for what it says."""
    came: queue.SimpleQueue[EdgeAnswer | JetselError] = queue.SimpleQueue()
    edge.ask(model, photograph, patience_ms, came.put)
    return came.get()
