"""The configured edge, asked without a daemon."""

from __future__ import annotations

import contextlib
import logging
import queue
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from jetsel.base.errors import ConfigError, JetselError, ModelUnavailableError, UnknownFamilyError
from jetsel.edge.messages import REPAIRS
from jetsel.edge.models import open_edge
from jetsel.site.site import Site, read_site

if TYPE_CHECKING:
    from jetsel.edge.runner import Edge, EdgeAnswer, Photograph
    from jetsel.zoo import Family

REACHED_S = 15.0
POLL_S = 0.05


@contextlib.contextmanager
def opened(config: Path | None) -> Iterator[tuple[Site, Family, Edge]]:
    """Open the edge that the configuration names, and wait until it can be asked.

    Raises ConfigError if none is named, ModelUnavailableError if it cannot be asked.
    """
    logging.getLogger("jetsel").addHandler(logging.NullHandler())  # what the edge logs is in the command's own error
    site = read_site(config)
    try:
        family = site.family(site.config.edge.family)
    except UnknownFamilyError as error:
        raise ConfigError(f"edge.family: {error}") from None
    edge = open_edge(site.config, family)
    if edge is None:
        raise ConfigError(
            'edge.url: set the address of the edge server, as in url = "http://edge.local:8000", and set edge.allow to '
            '"always" or "low-confidence"'
        )
    try:
        until_s = time.monotonic() + REACHED_S
        while (reason := edge.status().reason) is not None:
            if time.monotonic() > until_s or any(repair in reason for repair in REPAIRS.values()):
                raise ModelUnavailableError(
                    f"the edge server cannot be used: {reason}; correct [edge], or start the server"
                )
            time.sleep(POLL_S)
        yield site, family, edge
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
