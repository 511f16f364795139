"""One process of clients that send nothing but valid requests and note how each fared. Started by tests.faults.reloads.

It writes one line for each request: when it was sent and answered (seconds of the monotonic clock) and its outcome.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from types import FrameType

from jetsel.client import Client
from jetsel.errors import JetselError
from tests.system.daemons import drawn, encoded


def ask(endpoint: str, seed: int, fields: dict[str, str], stop: threading.Event, out: list[str]) -> None:
    """Ask one thing after another, never twice: what is refused counts, whether or not it may be tried again."""
    images = [encoded(drawn(seed + number)) for number in range(8)]
    with Client(endpoint, retry=False, timeout_ms=60_000) as client:
        number = 0
        while not stop.is_set():
            number += 1
            began = time.monotonic()
            try:
                client.classify(images[number % len(images)], **fields)  # type: ignore[arg-type]
            except JetselError as error:
                outcome = error.code
            else:
                outcome = "ok"
            out.append(f"{began:.6f} {time.monotonic():.6f} {outcome}")


def main() -> None:
    """Ask until SIGTERM, then write what happened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("endpoint")
    args = parser.parse_args()
    stop = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    out: list[str] = []
    asked: list[dict[str, str]] = [{}, {"model": "xs"}]
    threads = [
        threading.Thread(target=ask, args=(args.endpoint, 10 * number, fields, stop, out))
        for number, fields in enumerate(asked)
    ]
    for thread in threads:
        thread.start()
    while not stop.is_set():
        stop.wait(0.2)
    for thread in threads:
        thread.join()
    sys.stdout.write("\n".join(out))


if __name__ == "__main__":
    main()
