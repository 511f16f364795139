"""Keys as texts: pyzmq's own format both ways, and what is no key or no name of one."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import zmq
import zmq.auth
from hypothesis import given
from hypothesis import strategies as st

from jetsel.errors import ConfigError
from jetsel.keys import Certificate, KeyFolder, check_name, generate, z85
from jetsel.keys.certificate import is_key, parse, write
from jetsel.keys.folder import write_pair


def test_pyzmq_reads_what_is_written(tmp_path: Path) -> None:
    public, secret = tmp_path / "me.key", tmp_path / "me.key_secret"
    pair = write_pair(public, secret, "me", None)
    assert zmq.auth.load_certificate(secret) == (pair.public.encode(), (pair.secret or "").encode())
    assert zmq.auth.load_certificate(public) == (pair.public.encode(), None)
    assert (public.stat().st_mode & 0o777, secret.stat().st_mode & 0o777) == (0o644, 0o600)


def test_what_pyzmq_writes_is_read(tmp_path: Path) -> None:
    public, secret = zmq.auth.create_certificates(tmp_path, "me", {"admin": "yes"})
    found = parse(Path(secret).read_text(), "me")
    assert (found.public.encode(), (found.secret or "").encode()) == zmq.auth.load_certificate(secret)
    assert found.metadata == {"admin": "yes"}
    assert parse(Path(public).read_text(), "me").secret is None


VALUES = st.from_regex(r"[A-Za-z0-9 .=#@-]{0,20}", fullmatch=True)


@given(st.dictionaries(st.from_regex(r"[a-z][a-z-]{0,8}", fullmatch=True), VALUES))
def test_what_is_written_is_read_back(metadata: dict[str, str]) -> None:
    plain = {name: value for name, value in metadata.items() if not name.endswith("-key")}
    pair = Certificate(*PAIR, plain)
    assert parse(write(pair, "a title"), "x") == pair


PAIR = tuple(key.decode() for key in zmq.curve_keypair())


@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda raw: raw.decode("utf-8", "replace")))
def test_any_text_is_a_key_or_is_refused(text: str) -> None:
    for content in (text, f'public-key = "{text}"', f'curve\n  public-key = "{PAIR[0]}"\n  secret-key = "{text}"'):
        with contextlib.suppress(ConfigError):
            assert is_key(parse(content, "x").public)


def test_halves_of_two_pairs_are_refused() -> None:
    mixed = Certificate(generate().public, generate().secret)
    with pytest.raises(ConfigError, match="belong to two pairs"):
        parse(write(mixed, "mixed"), "x")


@pytest.mark.parametrize("text", ["", "a" * 39, "a" * 41, "~" * 40, "#" * 40, "\udc80" * 40, "é" * 40])
def test_other_texts_are_no_keys(text: str) -> None:
    assert not is_key(text)


PRIME = 2**255 - 19
ORDER_8 = 325606250916557431795983626356110631294008115727848805560023387167927233504  # cr.yp.to/ecdh.html
ALSO_8 = 39382357235489614581723060781553021112529911719440698176882885853963445705823
SMALL = [0, 1, ORDER_8, ALSO_8, PRIME - 1]


@pytest.mark.parametrize("number", [*SMALL, PRIME, PRIME + 1, *(point + 2**255 for point in SMALL)])
def test_a_key_that_gives_everybody_the_same_secret_is_none(number: int) -> None:
    text = z85.encode(number.to_bytes(32, "little"))
    assert not is_key(text)
    with pytest.raises(ConfigError, match="holds no CURVE key"):
        parse(f'public-key = "{text}"', "x")


@pytest.mark.parametrize("number", [2, 9, PRIME - 2, ORDER_8 + 1])
def test_points_beside_those_are_keys(number: int) -> None:
    assert is_key(z85.encode(number.to_bytes(32, "little")))


@pytest.mark.parametrize("name", ["camera-1", "me@host.example", "A", "0" * 64])
def test_a_plain_word_is_a_name(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "../a", "a\n", "a b", "é", "0" * 65, "-x"])
def test_what_could_lead_elsewhere_is_no_name(name: str, folder: KeyFolder) -> None:
    with pytest.raises(ConfigError, match="is no name for a key"):
        folder.allow(name, generate().public, is_admin=False)
    with pytest.raises(ConfigError, match="is no name for a key"):
        folder.revoke(name)
