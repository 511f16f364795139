"""Both clients behind one face, so that what they share is tested once for each."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import jetsel
from tests.processes import ended


class Caller:
    """A Client, or an AsyncClient in a loop of its own, whose calls are made one after another."""

    def __init__(self, client: jetsel.Client | jetsel.AsyncClient) -> None:
        self.client = client
        self._loop = asyncio.new_event_loop() if isinstance(client, jetsel.AsyncClient) else None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **settings: Any) -> Any:
            found = getattr(self.client, name)(*args, **settings)
            return self._loop.run_until_complete(found) if self._loop else found

        return call

    def close(self) -> None:
        self.client.close()
        if self._loop is not None:
            self._loop.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "peer.sock"


Connect = Callable[..., Caller]


@pytest.fixture(params=["Client", "AsyncClient"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Make clients of one of the two kinds; they are closed with the test."""
    with ended(lambda *given, **named: Caller(getattr(jetsel, request.param)(*given, **named)), Caller.close) as begin:
        yield begin
