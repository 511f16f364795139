"""What a bare timer misses beside a benchmark: a process that sleeps for a deadline, again and again."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def missed(deadlines_ms: Sequence[float], slack_ms: float) -> Iterator[dict[float, float]]:
    """Have a timer run while the block lasts; the dictionary then has the share that was late, by deadline."""
    found: dict[float, float] = {}
    command = [sys.executable, "-m", "benchmarks.timer", str(slack_ms), *map(str, deadlines_ms)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield found
        said, _ = process.communicate()
        found |= {float(ms): share for ms, share in json.loads(said).items()}


def _main(slack_ms: float, deadlines_ms: list[float]) -> None:
    import threading

    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    counts = {ms: [0, 0] for ms in deadlines_ms}
    while not over.is_set():
        for ms, count in counts.items():
            began_s = time.monotonic()
            time.sleep(ms / 1e3)
            count[0] += 1
            count[1] += (time.monotonic() - began_s) * 1e3 > ms + slack_ms
    print(json.dumps({ms: late / asked if asked else 0.0 for ms, (asked, late) in counts.items()}))


if __name__ == "__main__":
    _main(float(sys.argv[1]), [float(ms) for ms in sys.argv[2:]])
