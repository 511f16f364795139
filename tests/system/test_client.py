"""Both clients against the running daemon: they are understood, and notice a daemon that dies or comes back."""

from __future__ import annotations

import asyncio
import signal
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import jetsel
from jetsel import errors, wire
from tests.system.daemons import Daemon, Start, drawn, encoded, wait_until_ready
from tests.waiting import until


@pytest.fixture
def client(shared_daemon: Daemon) -> jetsel.Client:
    return jetsel.Client(shared_daemon.endpoint)


def top(answer: wire.Answer) -> list[wire.Ranked]:
    assert isinstance(answer, wire.Answer)
    return answer.top_k


def test_a_path_bytes_and_arrays_give_the_same_answer(client: jetsel.Client, tmp_path: Path) -> None:
    picture = drawn(5)
    (tmp_path / "drawn.png").write_bytes(encoded(picture, ".png"))
    wanted = top(client.classify(tmp_path / "drawn.png", model="s"))
    rgb = np.ascontiguousarray(picture[:, :, ::-1])
    padded = np.zeros((130, 170, 3), np.uint8)
    padded[3:123, 4:164] = picture
    for found in (
        client.classify(str(tmp_path / "drawn.png"), model="s"),
        client.classify(encoded(picture, ".png"), model="s"),
        client.classify(picture, model="s"),
        client.classify(rgb, channels="rgb", model="s"),
        client.classify(picture[:, :, ::-1], channels="rgb", model="s"),
        client.classify(padded[3:123, 4:164], model="s"),
        client.classify(np.asfortranarray(picture), model="s"),
        client.classify(Image.fromarray(rgb), model="s"),
    ):
        assert top(found) == wanted


def test_fifty_calls_at_once_and_some_cancelled(shared_daemon: Daemon) -> None:
    async def main() -> tuple[set[int], list[object]]:
        async with jetsel.AsyncClient(shared_daemon.endpoint) as client:
            pictures = [drawn(seed, 60 + seed, 80) for seed in range(50)]
            tasks = [asyncio.create_task(client.classify(picture, model="xs")) for picture in pictures]
            await asyncio.gather(*tasks[:1])
            cancelled = {i for i in range(1, 50, 7) if tasks[i].cancel()}  # unless it was answered already
            found = list(await asyncio.gather(*tasks, return_exceptions=True))
            assert (await client.status()).state == "ready"
            return cancelled, found

    cancelled, answers = asyncio.run(main())
    assert cancelled
    for seed, one in enumerate(answers):
        if seed in cancelled:
            assert isinstance(one, asyncio.CancelledError), one
        else:
            assert isinstance(one, wire.Answer), one
            assert one.height_px == 60 + seed


def test_busy_is_waited_out(start: Start) -> None:
    daemon = start("[server]\nqueue_requests = 2\n")

    async def main() -> None:
        async with jetsel.AsyncClient(daemon.endpoint) as client:
            calls = [client.classify(drawn(seed), model="xl") for seed in range(30)]
            assert len({id(answer) for answer in await asyncio.gather(*calls)}) == 30
            assert (await client.status()).requests["busy"] > 0, "the queue was never full: the test shows nothing"

    asyncio.run(main())


def under_way(daemon: Daemon, threads: ThreadPoolExecutor, client: jetsel.Client) -> Future[wire.Answer]:
    """Stop the daemon's process in its tracks and ask it something."""
    client.status()
    daemon.process.send_signal(signal.SIGSTOP)
    return threads.submit(client.classify, drawn())


@pytest.mark.parametrize("kind", [jetsel.Client, jetsel.AsyncClient])
def test_a_daemon_killed_while_a_call_waits_ends_the_call(start: Start, kind: type) -> None:
    daemon = start()

    async def main() -> None:
        async with jetsel.AsyncClient(daemon.endpoint, retry=False) as client:
            await client.status()
            daemon.process.send_signal(signal.SIGSTOP)
            asyncio.get_running_loop().call_later(0.1, daemon.process.kill)
            await client.classify(drawn())

    if kind is jetsel.AsyncClient:
        with pytest.raises(errors.NoReplyError, match="hung up"):
            asyncio.run(main())
    else:
        with jetsel.Client(daemon.endpoint, retry=False) as client, ThreadPoolExecutor(1) as threads:
            call = under_way(daemon, threads, client)
            assert wait([call], 0.1).not_done
            daemon.process.kill()
            with pytest.raises(errors.NoReplyError, match="hung up"):
                call.result(20)
    daemon.process.wait(10)
    with pytest.raises(errors.NoDaemonError, match=r"is gone.*jetsel serve"):
        jetsel.Client(daemon.endpoint).status()


def test_a_call_under_way_survives_a_restart(start: Start) -> None:
    daemon = start()
    with jetsel.Client(daemon.endpoint) as client, ThreadPoolExecutor(1) as threads:
        call = under_way(daemon, threads, client)
        assert wait([call], 0.1).not_done
        daemon.process.kill()
        daemon.process.wait(10)
        wait_until_ready(start(ready=False))
        assert call.result(60).label


def test_clients_leave_no_thread_and_no_descriptor_behind(shared_daemon: Daemon) -> None:
    def open_now() -> tuple[int, int]:
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    with jetsel.Client(shared_daemon.endpoint) as client:
        client.status()  # ZeroMQ's own threads and descriptors stay for the next client
    before = open_now()
    for _ in range(20):
        with jetsel.Client(shared_daemon.endpoint) as client:
            client.status()
        jetsel.Client(shared_daemon.endpoint).status()  # never closed: collected
    until(lambda: open_now() <= before)  # ZeroMQ closes them in a thread of its own
