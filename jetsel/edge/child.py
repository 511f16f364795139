"""The child process that queries the edge servers: `python -m jetsel.edge.child FD`. It ends with the daemon."""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import sys
import time
from collections.abc import Coroutine
from dataclasses import dataclass

import aiohttp
import msgspec

from jetsel.edge import oip
from jetsel.edge.messages import (
    FEWEST_TIMES,
    LATE_S,
    LENGTH,
    REPAIRS,
    Ask,
    AskResult,
    Cancel,
    EdgeStart,
    FromChild,
    Remote,
    State,
    ToChild,
    frame,
)
from jetsel.edge.oip import EdgeAnswerError

CONNECTIONS = 8
CHECK_EVERY_S = 0.5  # between two checks of an unavailable server, and time limit of each readiness request
CHECK_STEP_S = 5.0  # time limit of each other request of a check
QUIET_S = 1.0  # silence before a check, and the check's limit; the server is down after two failed checks
MOST_TIMEOUTS = 2  # requests in a row without an answer in time: the server is then checked before further use
MOST_REPLY_BYTES = 8 * 2**20


@dataclass
class _Model:
    """One model of the server. remote: a check adds the names of input and output.

    in_json: True if the server rejects binary tensors and takes JSON. answered_s: time.monotonic() of the last answer.
    """

    remote: Remote
    in_json: bool = False
    answered_s: float = 0.0


class ServerConnection:
    """HTTP connections to one edge server, EdgeStart.urls[index]: checks its availability, and sends requests to it."""

    def __init__(self, start: EdgeStart, index: int, session: aiohttp.ClientSession, out: asyncio.StreamWriter) -> None:
        self._start, self._index, self._url = start, index, start.urls[index]
        self._compared_model = next(iter(start.models)) if len(start.urls) > 1 else None
        self._models = {name: _Model(remote) for name, remote in start.models.items()}
        self._session = session
        self._out = out
        self._connections = asyncio.Semaphore(CONNECTIONS)
        self._queued: dict[int, asyncio.Task[None]] = {}  # request number -> wait for a connection
        self._sent: set[asyncio.Task[AskResult]] = set()  # requests under way
        self._unavailable: str | None = None  # why, None if available
        self._timeouts = 0  # requests in a row without an answer in time
        self._check_now = asyncio.Event()  # set: check the server without waiting for the next check
        self._is_suspect = False  # True: that check starts anew, as for a server that was unavailable

    def _report(self, message: FromChild) -> None:
        self._out.write(frame(message))

    async def watch(self) -> None:
        """Check the server for ever, and report its state to the daemon when it changes."""
        logged_reason: str | None = ""
        while True:
            state = await self._check(list(self._models), math.ceil(FEWEST_TIMES / len(self._models)), CHECK_EVERY_S)
            reason = state.reason
            if reason is None or reason != logged_reason:
                self._report(msgspec.structs.replace(state, is_new=reason is None))
                logged_reason = reason
            self._unavailable = reason
            if reason is not None:
                for sent in self._sent:
                    sent.cancel()
                await asyncio.sleep(CHECK_EVERY_S)
                continue
            self._timeouts, self._is_suspect = 0, False
            await self._watch_until_failure()

    async def _watch_until_failure(self) -> None:
        """Probe idle models at times, and check the server after timeouts; return when it seems to fail."""
        due_s = time.monotonic() + self._start.refresh_s
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._check_now.wait(), max(0.0, due_s - time.monotonic()))
            self._check_now.clear()
            if self._is_suspect:
                return
            models, now_s = list[str](), time.monotonic()
            if is_due := now_s >= due_s:
                due_s, since_s = now_s + self._start.refresh_s, now_s - self._start.refresh_s
                served = self._models.items()
                models = [name for name, model in served if model.answered_s < since_s or name == self._compared_model]
            state = await self._check(models, 0, QUIET_S)
            if state.reason is not None:
                return
            if is_due:
                self._report(state)

    async def _check(self, models: list[str], probes: int, limit_s: float) -> State:
        """Check that the server is ready, and each of `models` by its metadata and probes; return the server's state.

        probes: number of images of usual size to send to each model; 0 sends one, which is small except for the model
        by which servers are compared. limit_s: time limit of each readiness request.
        """
        refused: dict[str, str] = {}
        probed: list[tuple[str, AskResult]] = []
        try:
            status, _ = await self._get("/v2/health/ready", limit_s)  # opens the connection
            if status != 200:
                return State(self._index, f"{self._url} is not ready: it returns {status}{REPAIRS.get(status, '')}")
            began = time.perf_counter()
            await self._get("/v2/health/ready", limit_s)
            check_ms = (time.perf_counter() - began) * 1e3
            for name in models:
                remote = self._start.models[name]
                probe = remote.probe if probes or name == self._compared_model else remote.small_probe
                status, body = await self._get(f"/v2/models/{remote.name}", CHECK_STEP_S)
                try:
                    if status != 200:
                        raise EdgeAnswerError(f"no model {remote.name} there ({status}): set edge.models.{name}.remote")
                    self._models[name].remote = oip.check_metadata(remote, body)
                    for _ in range(max(1, probes)):
                        sent = await self._probe(name, probe)
                        probed.append((name, sent))
                except EdgeAnswerError as error:
                    refused[name] = f"{self._url}: {error}"
        except aiohttp.InvalidURL:
            return State(self._index, f"edge.url: {self._url} is not a valid URL")
        except Exception as error:  # whatever the server does, it is checked again
            return State(self._index, f"{self._url}: {str(error) or type(error).__name__}")
        reason = "; ".join(refused.values()) if len(refused) == len(self._models) else None
        return State(self._index, reason, refused, probed, check_ms)

    async def _probe(self, name: str, payload: bytes) -> AskResult:
        """Send a test image, as JSON if the server rejects binary tensors; raises the errors of `_infer`."""
        model = self._models[name]
        shape = model.remote.probe_shape
        try:
            try:
                return await self._infer(-1, name, payload, shape, CHECK_STEP_S)
            except EdgeAnswerError:
                if shape is None or model.in_json:
                    raise
                model.in_json = True  # it may not support binary tensors
                return await self._infer(-1, name, payload, shape, CHECK_STEP_S)
        except EdgeAnswerError:
            model.in_json = False
            raise

    async def _get(self, path: str, limit_s: float) -> tuple[int, bytes]:
        timeout = aiohttp.ClientTimeout(total=limit_s)
        async with self._session.get(self._url + path, timeout=timeout, allow_redirects=False) as response:
            return response.status, await _body(response)

    def ask(self, ask: Ask) -> None:
        """Send a request once a connection is free; the result is reported to the daemon."""
        self._queued[ask.number] = asyncio.ensure_future(self._ask_in_turn(ask))

    def cancel(self, number: int) -> None:
        """Drop a request that has not been sent. If it was sent, its answer is read, which keeps the connection."""
        task = self._queued.pop(number, None)
        if task is not None:
            task.cancel()
            self._report(AskResult(number, None, "cancelled", 0, 0, 0.0, None))

    async def _ask_in_turn(self, ask: Ask) -> None:
        async with self._connections:
            if self._queued.pop(ask.number, None) is not None:
                await self._ask(ask)

    async def _ask(self, ask: Ask) -> None:
        """Send one request and report its result; ask for a check after timeouts or a lost connection."""
        began = time.perf_counter()
        limit_s = ask.patience_ms / 1e3 + LATE_S
        try:
            result = await self._while_available(self._infer(ask.number, ask.model, ask.payload, ask.shape, limit_s))
            self._timeouts, self._models[ask.model].answered_s = 0, time.monotonic()
        except Exception as failed:  # the daemon waits for a result in any case
            if isinstance(failed, asyncio.TimeoutError):
                error = "no answer in time"
                self._timeouts += 1
            else:
                error = str(failed) or type(failed).__name__
                self._timeouts = self._timeouts if isinstance(failed, EdgeAnswerError) else MOST_TIMEOUTS
            result = AskResult(ask.number, None, error, 0, 0, (time.perf_counter() - began) * 1e3, None)
        if self._timeouts >= MOST_TIMEOUTS and self._unavailable is None:
            self._is_suspect = True
            self._check_now.set()
        self._report(result)

    async def _while_available(self, sending: Coroutine[None, None, AskResult]) -> AskResult:
        """Wait for a result; check the server if it is silent. Raises ConnectionError if it becomes unavailable."""
        sent = asyncio.ensure_future(sending)
        self._sent.add(sent)
        sent.add_done_callback(self._sent.discard)
        if self._unavailable is not None:
            sent.cancel()
        while not (await asyncio.wait({sent}, timeout=QUIET_S))[0]:
            last_s = max(model.answered_s for model in self._models.values())
            if time.monotonic() - last_s > QUIET_S:  # no answer to any other request either
                self._check_now.set()
        if sent.cancelled():
            raise ConnectionError(f"cancelled: {self._unavailable}")
        return sent.result()

    async def _infer(
        self, number: int, model: str, payload: bytes, shape: list[int] | None, limit_s: float
    ) -> AskResult:
        """Send one image, of this shape if it is a tensor. Raises EdgeAnswerError for a wrong answer, and aiohttp's."""
        remote = self._models[model].remote
        parts, headers = oip.encode_request(remote, payload, shape, is_binary=not self._models[model].in_json)
        url, timeout = f"{self._url}/v2/models/{remote.name}/infer", aiohttp.ClientTimeout(total=limit_s)
        began = time.perf_counter()
        sending = self._session.post(url, data=b"".join(parts), headers=headers, timeout=timeout, allow_redirects=False)
        async with sending as response:
            body = await _body(response)
        if response.status != 200:
            raise EdgeAnswerError(f"{response.status}: {body[:200].decode(errors='replace')}")
        length = response.headers.get(oip.LENGTH_HEADER)
        numbers, server_ms = oip.decode_reply(remote, body, int(length) if length else None)
        took_ms = (time.perf_counter() - began) * 1e3
        sent = sum(map(len, parts))
        return AskResult(number, numbers.astype("<f4").tobytes(), None, sent, len(body), took_ms, server_ms)


async def _body(response: aiohttp.ClientResponse) -> bytes:
    """Return the body. Raises EdgeAnswerError if it is too long, or for a redirect: images go to no other host."""
    if 300 <= response.status < 400:
        where = response.headers.get("Location", "")
        raise EdgeAnswerError(f"it redirects to {where!r}, which is not followed: set edge.url to the final address")
    body = b""
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MOST_REPLY_BYTES:
            raise EdgeAnswerError(f"its reply exceeds {MOST_REPLY_BYTES} bytes")
    return body


async def _main(fd: int) -> None:
    """Serve the daemon over the socket `fd` until the daemon closes it."""
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=fd))
    decoder: msgspec.msgpack.Decoder[ToChild] = msgspec.msgpack.Decoder(ToChild)

    async def read() -> ToChild:
        (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
        return decoder.decode(await reader.readexactly(length))

    start = await read()
    assert isinstance(start, EdgeStart)
    headers = {"Accept-Encoding": "identity"}  # gzip might unfold to any size
    headers |= {"Authorization": f"Bearer {start.token}"} if start.token else {}
    connector = aiohttp.TCPConnector(limit=0, limit_per_host=CONNECTIONS + 1, keepalive_timeout=60.0)  # 1 to check
    async with aiohttp.ClientSession(connector=connector, headers=headers, auto_decompress=False) as session:
        connections = [ServerConnection(start, index, session, writer) for index in range(len(start.urls))]
        watches = [asyncio.ensure_future(connection.watch()) for connection in connections]
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):  # the daemon has ended
            while True:
                message = await read()
                if isinstance(message, Ask):
                    connections[message.edge].ask(message)
                elif isinstance(message, Cancel):
                    for connection in connections:
                        connection.cancel(message.number)
        for watch in watches:
            watch.cancel()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
