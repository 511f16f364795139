"""Who is let in over tcp, by the frames that libzmq asks with, and what is told of the refused, in bounded memory."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st
from zmq.utils import z85

from jetsel.daemon.access.keyring import Keyring
from jetsel.daemon.access.refusals import MOST_ADDRESSES, SUMMARY_EVERY_S, Refusals
from jetsel.daemon.access.strangers import UNKNOWN, Strangers
from jetsel.daemon.access.zap import Handshakes
from jetsel.daemon.identity import Identity
from jetsel.daemon.trust import Trust
from jetsel.errors import NotAllowedError, ReloadFailedError
from jetsel.keys import KeyFolder, generate

CAMERA, BOSS, STRANGER = generate().public, generate().public, generate().public


@pytest.fixture
def folder(tmp_path: Path) -> KeyFolder:
    found = KeyFolder(tmp_path / "keys")
    found.make_server(None)
    found.allow("camera", CAMERA, is_admin=False)
    found.allow("boss", BOSS, is_admin=True)
    return found


def asked(*credentials: bytes, mechanism: bytes = b"CURVE") -> list[bytes]:
    """A request as libzmq makes it (RFC 27)."""
    return [b"1.0", b"7", b"jetsel", b"192.0.2.7", b"", mechanism, *credentials]


def shown(public: str) -> list[bytes]:
    return asked(z85.decode(public.encode()))


def test_an_allowed_key_is_let_in_under_its_name(folder: KeyFolder) -> None:
    handshakes = Handshakes(Keyring(str(folder.path)))
    for public, expected in (
        (CAMERA, Identity("key camera")),
        (BOSS, Identity("key boss", is_admin=True)),
    ):
        verdict = handshakes.judge(shown(public))
        assert verdict.refusal is None
        assert verdict.reply[:3] == [b"1.0", b"7", b"200"]
        assert handshakes.identify(verdict.reply[4].decode()) == expected


@pytest.mark.parametrize(
    "request_frames",
    [
        shown(STRANGER),
        asked(mechanism=b"NULL"),
        asked(b"user", b"password", mechanism=b"PLAIN"),
        asked(b"short"),
        asked(),
        asked(bytes(32), bytes(32)),
    ],
    ids=["unknown key", "NULL", "PLAIN", "short key", "no key", "two keys"],
)
def test_anybody_else_is_refused(folder: KeyFolder, request_frames: list[bytes]) -> None:
    verdict = Handshakes(Keyring(str(folder.path))).judge(request_frames)
    assert verdict.reply[1:3] == [b"7", b"400"]
    assert (verdict.reply[4], verdict.address) == (b"", "192.0.2.7")
    assert verdict.refusal


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Handshakes:
    """Where no key is allowed."""
    folder = KeyFolder(tmp_path_factory.mktemp("bare") / "keys")
    folder.make_server(None)
    return Handshakes(Keyring(str(folder.path)))


@given(frames=st.lists(st.binary(max_size=40), max_size=9))
def test_any_frames_get_a_reply_of_six_frames_that_lets_nobody_in(bare: Handshakes, frames: list[bytes]) -> None:
    reply = bare.judge(frames).reply
    assert len(reply) == 6
    assert reply[2] in (b"400", b"500")


def test_who_made_its_user_id_up_is_refused(folder: KeyFolder) -> None:
    handshakes = Handshakes(Keyring(str(folder.path)))
    other = Handshakes(Keyring(str(folder.path))).judge(shown(BOSS)).reply[4].decode()
    for made_up in ("", BOSS, f":{BOSS}", "loopback", other):
        found = handshakes.identify(made_up)
        assert found.refusal
        assert not found.is_admin


def test_a_key_counts_as_it_is_now(folder: KeyFolder) -> None:
    keyring = Keyring(str(folder.path))
    handshakes = Handshakes(keyring)
    user_id = handshakes.judge(shown(CAMERA)).reply[4].decode()
    folder.revoke("camera")
    assert keyring.reload() == ["key camera revoked"]
    gone = handshakes.identify(user_id)
    assert gone.refusal is not None
    assert not gone.is_admin
    folder.allow("phone", CAMERA, is_admin=True)
    assert keyring.reload() == ["key phone allowed as admin"]
    assert handshakes.identify(user_id) == Identity("key phone", is_admin=True)


def test_a_reload_of_keys_that_are_not_safe_changes_nothing(folder: KeyFolder) -> None:
    keyring = Keyring(str(folder.path))
    folder.revoke("camera")
    folder.path.chmod(0o777)
    with pytest.raises(ReloadFailedError, match=r"server\.keys: .*chmod go-w"):
        keyring.reload()
    assert keyring.find(CAMERA) is not None


def test_only_an_admin_s_key_may_change_the_daemon() -> None:
    trust = Trust(None)
    trust.check(Identity("key boss", is_admin=True))
    with pytest.raises(NotAllowedError, match=r"key camera may not .*--admin"):
        trust.check(Identity("key camera"))
    with pytest.raises(NotAllowedError, match="without keys"):
        trust.check(Identity("loopback"))


# The order of libzmq's events, as libzmq 4.3.5 was seen to send them.


def accepted(descriptor: int) -> dict[str, Any]:
    return {"event": zmq.EVENT_ACCEPTED, "value": descriptor, "endpoint": b"tcp://192.0.2.1:5555"}


def ended(descriptor: int) -> dict[str, Any]:
    return {"event": zmq.EVENT_DISCONNECTED, "value": descriptor, "endpoint": b"tcp://192.0.2.1:5555"}


def failed(how: int) -> dict[str, Any]:
    return {"event": zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, "value": how, "endpoint": b"tcp://192.0.2.1:5555"}


def strangers(timeout_s: float = 30.0) -> Strangers:
    return Strangers(timeout_s, lambda descriptor: f"192.0.2.{descriptor}")


def test_a_connection_that_ends_before_it_asked_was_refused() -> None:
    found = strangers()
    assert found.take([accepted(7)]) == []
    ((address, reason),) = found.take([failed(zmq.PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC), ended(7)])
    assert address == "192.0.2.7"
    assert "server.key" in reason
    ((_, reason),) = found.take([accepted(7), ended(7)])
    assert "hung up" in reason, "the fault before was another connection's"
    assert len(found) == 0


def test_a_connection_that_asked_is_judged_by_who_answers() -> None:
    found = strangers()
    found.take([accepted(7), accepted(8)])
    found.asked("192.0.2.7")
    ((address, _),) = found.take([ended(7), ended(8)])
    assert address == "192.0.2.8"


def test_one_that_never_greeted_is_told_so() -> None:
    found = strangers(timeout_s=0.0)
    ((_, reason),) = found.take([accepted(7), ended(7)])
    assert reason == "it did not greet within 0 s"


def test_a_descriptor_that_was_used_again_tells_nobodys_address() -> None:
    found = strangers()
    first, second = found.take([accepted(7), ended(7), accepted(7), ended(7)])
    assert (first.address, second.address) == (UNKNOWN, "192.0.2.7")


def test_a_connection_that_has_gone_has_no_address() -> None:
    read, write = os.pipe()
    os.close(read)
    os.close(write)
    ((address, _),) = Strangers(30.0).take([accepted(read), ended(read)])
    assert address == UNKNOWN


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_an_address_is_told_once_and_counted_from_then_on(caplog: pytest.LogCaptureFixture) -> None:
    clock = [0.0]
    refusals = Refusals(lambda: clock[0])
    for _ in range(1000):
        refusals.note("192.0.2.7", "no key")
    assert told(caplog) == ["192.0.2.7 was refused: no key"]
    clock[0] += SUMMARY_EVERY_S
    refusals.look()
    assert told(caplog)[1:] == [
        "peers were refused 999 times more in the last hour, most from 192.0.2.7 (999); "
        "0 times from addresses not named before"
    ]
    refusals.note("192.0.2.7", "no key")
    clock[0] += SUMMARY_EVERY_S
    refusals.look()
    assert len(told(caplog)) == 3
    for _ in range(2):  # it stayed away for an hour: nothing to tell, and it is news again
        clock[0] += SUMMARY_EVERY_S
        refusals.look()
    refusals.note("192.0.2.7", "no key")
    assert told(caplog)[3:] == ["192.0.2.7 was refused: no key"]


def test_a_scan_from_many_addresses_fills_neither_the_log_nor_the_memory(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = [0.0]
    refusals = Refusals(lambda: clock[0])
    for number in range(10_000):
        refusals.note(f"2001:db8::{number:x}", "no key")
    assert (len(refusals), len(told(caplog))) == (MOST_ADDRESSES, MOST_ADDRESSES)
    clock[0] += SUMMARY_EVERY_S
    refusals.look()
    assert "9744 times from addresses not named before" in told(caplog)[-1]
    assert len(refusals) == 0
