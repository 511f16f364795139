"""What the asyncio client alone promises: many calls at once, each cancelled on its own, and one loop after another."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import jetsel
from jetsel import AsyncClient, wire
from jetsel.base.errors import NoDaemonError, NoReplyError
from tests.unit.client.peer import Peer, Seen, answer, daemon_like, echo, silent
from tests.waiting import until


async def until_seen(peer: Peer, count: int) -> None:
    await asyncio.to_thread(until, lambda: len(peer.seen) >= count)


def test_calls_at_once_are_each_given_their_own_answer(path: Path) -> None:
    def turned_round(seen: list[Seen]) -> Sequence[wire.Reply]:
        """Answer ten at a time, the last one first."""
        if len(seen) % 10:
            return []
        return [answer(one, (one.image or b"").decode()) for one in reversed(seen[-10:])]

    async def main(endpoint: str) -> list[str]:
        async with AsyncClient(endpoint) as client:
            calls = [client.classify(f"photograph {i}".encode()) for i in range(200)]
            return [found.label for found in await asyncio.gather(*calls)]

    with Peer(path, turned_round) as peer:
        assert asyncio.run(main(peer.endpoint)) == [f"photograph {i}" for i in range(200)]


def test_a_call_that_is_cancelled_leaves_the_others_alone(path: Path) -> None:
    def when_four(seen: list[Seen]) -> Sequence[wire.Reply]:
        return [answer(one, (one.image or b"").decode()) for one in seen] if len(seen) == 4 else []

    async def main(peer: Peer) -> None:
        async with AsyncClient(peer.endpoint) as client:
            tasks = [asyncio.create_task(client.classify(str(i).encode())) for i in range(3)]
            await until_seen(peer, 3)
            tasks[1].cancel()
            assert (await client.classify(b"3")).label == "3"
            assert [(await tasks[i]).label for i in (0, 2)] == ["0", "2"]
            with pytest.raises(asyncio.CancelledError):
                await tasks[1]

    with Peer(path, when_four) as peer:
        asyncio.run(main(peer))


def test_closing_ends_every_call_and_none_is_tried_again(path: Path) -> None:
    async def main(peer: Peer) -> list[object]:
        client = AsyncClient(peer.endpoint)
        tasks = [asyncio.create_task(client.classify(b"image")) for _ in range(5)]
        await until_seen(peer, 5)
        client.close()
        return list(await asyncio.gather(*tasks, return_exceptions=True))

    with Peer(path, silent) as peer:
        found = asyncio.run(main(peer))
        assert all(isinstance(one, NoReplyError) and "closed" in str(one) for one in found)
        assert len(peer.seen) == 5


def test_a_restart_under_way_is_waited_for(path: Path) -> None:
    async def main() -> str:
        async with AsyncClient(f"ipc://{path}") as client:
            with Peer(path, silent) as first:
                call = asyncio.create_task(client.classify(b"tabby"))
                await until_seen(first, 1)
            async with AsyncClient(f"ipc://{path}") as newcomer:
                with pytest.raises(NoDaemonError):  # nobody is there now, and who begins now is told so at once
                    await newcomer.status()
            with Peer(path, echo):
                return (await asyncio.wait_for(call, 20)).label

    assert asyncio.run(main()) == "tabby"


def test_many_large_images_wait_for_room_and_all_arrive(path: Path) -> None:
    async def main(endpoint: str) -> int:
        async with AsyncClient(endpoint) as client:
            calls = [client.classify(bytes([i]) * 1_000_000) for i in range(100)]
            return len(await asyncio.gather(*calls))

    with Peer(path, daemon_like) as peer:
        assert asyncio.run(main(peer.endpoint)) == 100
        assert {seen.image for seen in peer.seen} == {bytes([i]) * 1_000_000 for i in range(100)}


def test_threads_that_share_a_client_get_their_own_answers(path: Path) -> None:
    with Peer(path, echo) as peer, jetsel.Client(peer.endpoint) as client, ThreadPoolExecutor(8) as threads:
        names = [f"photograph {i}" for i in range(100)]
        found = threads.map(lambda name: client.classify(name.encode()).label, names)
        assert list(found) == names


def test_a_thread_that_never_got_its_turn_says_so(path: Path) -> None:
    with Peer(path, silent) as peer, jetsel.Client(peer.endpoint) as client, ThreadPoolExecutor(1) as threads:
        other = threads.submit(client.status, timeout_ms=1000)
        until(lambda: peer.seen)
        with pytest.raises(NoReplyError, match="another thread"):
            client.status(timeout_ms=50)
        with pytest.raises(NoReplyError, match="within 1000 ms"):
            other.result(20)


FORKED = """
import os, sys, jetsel
client = jetsel.Client(sys.argv[1], timeout_ms=5000)
client.status()
child = os.fork()
if child == 0:
    os._exit(0 if client.status().state == "ready" else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(client.status().state)
"""


def test_a_forked_process_gets_a_connection_of_its_own(path: Path) -> None:
    with Peer(path, daemon_like) as peer:
        command = [sys.executable, "-c", FORKED, peer.endpoint]
        found = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert found.stdout == "ready\n", found.stderr
        assert len(peer.seen) == 3
