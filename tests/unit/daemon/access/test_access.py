"""Whose keys are let in over tcp, and what is told of the refused, in bounded memory."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from jetsel.daemon.access.keyring import Keyring
from jetsel.daemon.access.refusals import MOST_ADDRESSES, SUMMARY_EVERY_S, Refusals
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


def test_a_key_counts_as_it_is_now(folder: KeyFolder) -> None:
    keyring = Keyring(str(folder.path))
    assert keyring.identify(CAMERA) == Identity("key camera")
    assert keyring.identify(BOSS) == Identity("key boss", is_admin=True)
    folder.revoke("camera")
    assert keyring.reload() == ["key camera revoked"]
    gone = keyring.identify(CAMERA)
    assert gone.refusal is not None
    assert not gone.is_admin
    folder.allow("phone", CAMERA, is_admin=True)
    assert keyring.reload() == ["key phone allowed as admin"]
    assert keyring.identify(CAMERA) == Identity("key phone", is_admin=True)


def test_a_key_that_nobody_allowed_is_nobody_s(folder: KeyFolder) -> None:
    keyring = Keyring(str(folder.path))
    for public in (STRANGER, "", "camera", "key boss"):
        found = keyring.identify(public)
        assert found.refusal is not None
        assert not found.is_admin


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
