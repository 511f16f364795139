"""What both clients share: their settings, how each attempt is written, and why there was no answer."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field

import msgspec

from jetsel.client.credentials import credentials
from jetsel.client.link import Link
from jetsel.client.patience import CrowdedError, Patience, UngreetedError
from jetsel.endpoint import find, why_absent
from jetsel.errors import BadRequestError, DeadlineError, NoDaemonError, NoReplyError, NotAllowedError
from jetsel.wire import MAX_JSON_BYTES, Classify, Request, encode


@dataclass(eq=False)
class Settings:
    """Where a client connects, how long it waits, and what it sends at most. Nothing is opened before the first call.

    endpoint: ipc:///path or tcp://host:port; None: $JETSEL_ENDPOINT, the user's socket, /run/jetsel/jetsel.sock.
    timeout_ms: of a whole call, attempts and pauses included, where the call names no other.
    max_image_mb: the daemon's [server] max_image_mb; past it an image is refused here, before it is sent.
    key, server_key: for a daemon over tcp that needs them: the path of your own secret key file, and of a copy of the
    daemon's server.key, or its 40 letters; None: $JETSEL_KEY and $JETSEL_SERVER_KEY. Over ipc they are not used.
    retry: whether failures that say `retry` (busy, loading, a restart) are tried again within the timeout.
    """

    endpoint: str | None = None
    _: KW_ONLY
    timeout_ms: float = 30_000.0
    max_image_mb: float = 16.0
    retry: bool = True
    key: str | os.PathLike[str] | None = None
    server_key: str | os.PathLike[str] | None = None
    _prefix: str = field(init=False, repr=False, default_factory=lambda: f"{os.getpid()}-{os.urandom(3).hex()}")
    _count: Iterator[int] = field(init=False, repr=False, default_factory=lambda: itertools.count(1))

    def _patience(self, request: Request, timeout_ms: float | None) -> Patience:
        deadline_ms = request.deadline_ms if isinstance(request, Classify) else None
        return Patience(self.timeout_ms if timeout_ms is None else timeout_ms, deadline_ms)

    def _write(self, request: Request, patience: Patience) -> tuple[str, bytes]:
        """Return frame one and its id, a new one for each attempt: a late reply is never taken for a later one's.

        Raises DeadlineError where the time for the answer is over, and BadRequestError where the daemon would not read
        frame one, and could not tell whose it is.
        """
        request_id = f"{self._prefix}-{next(self._count)}"
        if isinstance(request, Classify) and request.deadline_ms is not None and request.deadline_ms > 0:
            left_ms = patience.deadline_left_ms
            if left_ms is not None and left_ms <= 0:
                raise DeadlineError(f"{request.deadline_ms:g} ms were over before the photograph could be sent")
            request = msgspec.structs.replace(request, deadline_ms=left_ms)
        message = encode(msgspec.structs.replace(request, id=request_id))
        if len(message) > MAX_JSON_BYTES:
            raise BadRequestError(f"the request has {len(message)} bytes beside its image; {MAX_JSON_BYTES} are read")
        return request_id, message

    def _connect(self) -> Link:
        endpoint = find(self.endpoint)
        is_tcp = endpoint.startswith("tcp://")
        return Link(endpoint, credentials(self.key, self.server_key) if is_tcp else None)


def end_of(link: Link) -> NoDaemonError | NoReplyError | NotAllowedError:
    """Return why a link that has ended did so."""
    if link.end == "mismatch":
        return NotAllowedError(_mismatch(link))
    if link.end == "denied":
        return NotAllowedError(
            f"the daemon at {link.endpoint} does not know this key: have its owner run jetsel keys allow with your "
            ".key file, then jetsel reload"
        )
    if link.end == "ungreeted":
        return UngreetedError(_ungreeted(link))
    if link.end == "refused":
        return why_absent(link.endpoint) or CrowdedError(
            f"the daemon at {link.endpoint} did not let this client in: too many connect at once, see its log"
        )
    return NoReplyError(
        f"the daemon at {link.endpoint} hung up before it answered: it was stopped, "
        "or the message is larger than it takes"
    )


def _mismatch(link: Link) -> str:
    if link.has_key:
        return f"the daemon at {link.endpoint} takes no keys: leave out key and server_key (--key, --server-key)"
    return (
        f"the daemon at {link.endpoint} needs a key: give key and server_key (--key, --server-key); "
        "jetsel keys new makes one"
    )


def _ungreeted(link: Link) -> str:
    keys = (
        "server_key is not its server.key, this key has all the connections that one may have"
        if link.has_key
        else "it needs a key (key and server_key, or --key and --server-key)"
    )
    return f"the daemon at {link.endpoint} hung up on the first words: {keys}, it was stopped, or no jetsel"


def too_late(link: Link, patience: Patience) -> NoReplyError:
    """Return the error of a call whose time is over."""
    return NoReplyError(
        f"the daemon at {link.endpoint} did not answer within {patience.timeout_ms:g} ms: "
        "see `jetsel status`, or allow more time"
    )
