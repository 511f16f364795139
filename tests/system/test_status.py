"""What `status` tells of a real daemon: each message counted once."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from tests.system.daemons import Connect, Peer, Start, drawn, encoded


def test_every_message_counts_once_whoever_sends_it(start: Start, connect: Connect) -> None:
    daemon = start('[models]\nonly = ["xs"]\n[server]\nqueue_requests = 2\n')
    image = encoded(drawn())
    ended: Counter[str] = Counter()
    counting = threading.Lock()

    def work(place: int) -> None:
        peer = Peer(daemon.endpoint)
        for i in range(60):
            message: tuple[Any, ...] = (
                ({"type": "classify"}, image),
                ({"type": "classify"}, b"no image"),
                ({"type": "classify", "model": "none"}, image),
                ({"type": "dance"},),
                (b"no JSON",),
                ({"type": "classify"}, image, b"one frame too many"),
            )[(place + i) % 6]
            reply = peer.ask(*message)
            with counting:
                ended["ok" if reply["type"] == "answer" else reply["code"]] += 1
        peer.close()

    threads = [threading.Thread(target=work, args=(place,)) for place in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = connect(daemon).status()
    assert told["requests"] == ended
    assert sum(ended.values()) == 300
    assert told["stages_ms"]["answers"] == ended["ok"] == told["families"][0]["answers"]
    assert told["queue"]["most_requests"] == 2
    assert (told["queue"]["waiting"], told["queue"]["working"], told["queue"]["bytes"]) == (0, 0, 0)
