"""Where the tcp socket listens, and what an address is called."""

from __future__ import annotations

import re
import socket

import pytest

from jetsel.daemon import tcp
from jetsel.errors import ConfigError


@pytest.mark.parametrize(
    ("endpoint", "where"),
    [
        ("tcp://127.0.0.1:0", "tcp://127.0.0.1:"),
        ("tcp://localhost:0", "tcp://127.0.0.1:"),
        ("tcp://*:0", "tcp://0.0.0.0:"),
        ("tcp://[::1]:0", "tcp://[::1]:"),
        ("tcp://[::]:0", "tcp://[::]:"),
        ("tcp://lo:0", "tcp://127.0.0.1:"),
    ],
)
def test_an_address_all_of_them_a_name_or_an_interface(endpoint: str, where: str) -> None:
    with tcp.listen(endpoint) as listening:
        assert tcp.endpoint_of(listening).startswith(where)
        assert not tcp.endpoint_of(listening).endswith(":0")


def test_over_both_kinds_of_ip_an_address_is_called_the_same() -> None:
    with tcp.listen("tcp://[::]:0") as listening:
        port = listening.getsockname()[1]
        for host, called in (("127.0.0.1", "127.0.0.1"), ("::1", "::1")):
            with socket.create_connection((host, port)):
                peer, name = listening.accept()
                peer.close()
                assert tcp.peer_address(name) == called


@pytest.mark.parametrize("host", ["nosuch0", "board..lan", ".", "x" * 64])
def test_a_name_that_there_is_not_is_refused_in_words(host: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"^server\.tcp: cannot listen at tcp://{re.escape(host)}:5799: \S.*; example"
    ):
        tcp.listen(f"tcp://{host}:5799")
