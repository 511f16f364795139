"""Ed25519 keys, and JSON documents with one or several signatures."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import msgspec
from msgspec import Struct

from jetsel.base.errors import ConfigError, RepositoryError, pip_install
from jetsel.base.files import read_bounded, repair_of

MAX_DOCUMENT_BYTES = 2**20  # a bundle of 100 models has about 60 KB
_MAX_KEY_BYTES = 1024
_HEX_KEY = re.compile(r"[0-9a-f]{64}")

Document = TypeVar("Document", bound=Struct)


class Signed(Struct, frozen=True, forbid_unknown_fields=True):
    """A signed document. signatures: by public key, of the document's bytes as written; both in hexadecimal."""

    document: msgspec.Raw
    signatures: dict[str, str]


def make_key(path: Path) -> str:
    """Write a new private key, readable only by its owner, and the public key as .pub; return the public key.

    Raises RepositoryError if one of the files exists or cannot be written.
    """
    nacl = _nacl()
    key = nacl.SigningKey.generate()
    public_path, public = Path(f"{path}.pub"), bytes(key.verify_key).hex()
    try:
        if public_path.exists():
            raise FileExistsError(errno.EEXIST, "", str(public_path))
        for target, mode, content in ((path, 0o600, bytes(key).hex()), (public_path, 0o644, public)):
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            with os.fdopen(descriptor, "w") as file:
                file.write(f"{content}\n")
                file.flush()
                os.fsync(descriptor)
    except FileExistsError as fault:
        raise RepositoryError(
            f"{fault.filename}: already exists, and keys are never overwritten: name another file"
        ) from None
    except OSError as fault:
        raise RepositoryError(f"{path}: not written ({fault.strerror}): {repair_of(fault)}") from fault
    return public


def read_key(path: Path) -> str:
    """Return the private or public key in a file, in hexadecimal; raises RepositoryError."""
    try:
        text = read_bounded(path, _MAX_KEY_BYTES).decode("ascii").strip()
    except OSError as fault:
        raise RepositoryError(f"{path}: cannot be read ({fault.strerror}): make a key with jetsel repo key") from fault
    except UnicodeDecodeError:
        text = ""
    if not _HEX_KEY.fullmatch(text):
        raise RepositoryError(f"{path}: not a key (64 hexadecimal digits): make one with jetsel repo key")
    return text


def public_key(private: str) -> str:
    """Return the public key of a private key, both in hexadecimal."""
    return bytes(_nacl().SigningKey(bytes.fromhex(private)).verify_key).hex()


def sign(document: Struct, keys: Sequence[str]) -> bytes:
    """Return the document with a signature by each of these private keys."""
    nacl, content = _nacl(), msgspec.json.encode(document)
    signatures = {public_key(key): nacl.SigningKey(bytes.fromhex(key)).sign(content).signature.hex() for key in keys}
    return msgspec.json.encode(Signed(msgspec.Raw(content), signatures)) + b"\n"


def unwrap(content: bytes, kind: type[Document], trusted: Collection[str], name: str) -> tuple[Document, list[str]]:
    """Return a signed document, and the trusted public keys that signed it.

    name: of the document, for messages. Raises RepositoryError unless a trusted key's signature is valid; the document
    is not decoded before.
    """
    try:
        signed = msgspec.json.decode(content, type=Signed)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise RepositoryError(
            f"{name}: truncated, or not a signed document ({fault}): download it again, or publish again"
        ) from fault
    signers = [key for key in signed.signatures if key in trusted]
    if not signers:
        by = ", ".join(key[:16] for key in signed.signatures) or "nobody"
        raise RepositoryError(f"{name}: signed by {by}, but not by a trusted key: trust its key, or sign it again")
    valid_signers = [key for key in signers if _is_valid_signature(bytes(signed.document), key, signed.signatures[key])]
    if not valid_signers:
        raise RepositoryError(f"{name}: altered since it was signed by {signers[0][:16]}: publish it again")
    try:
        return msgspec.json.decode(signed.document, type=kind), valid_signers
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise RepositoryError(f"{name}: signed, but not understood ({fault}): update jetsel") from fault


def _is_valid_signature(content: bytes, public: str, signature: str) -> bool:
    from nacl.exceptions import BadSignatureError

    try:
        _nacl().VerifyKey(bytes.fromhex(public)).verify(content, bytes.fromhex(signature))
    except (BadSignatureError, ValueError, TypeError):
        return False
    return True


def _nacl() -> ModuleType:
    try:
        from nacl import signing
    except ModuleNotFoundError:
        raise ConfigError(f"signatures need PyNaCl: {pip_install('agent')}") from None
    return signing
