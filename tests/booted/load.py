"""Runs in the machine: clients that ask without a pause until standard input closes, then tell how each call ended.

Arguments: how many clients, then a picture.
"""

import json
import sys
import threading
from collections import Counter

from jetsel import Client
from jetsel.base.endpoint import SYSTEM_SOCKET
from jetsel.base.errors import JetselError

ended: Counter[str] = Counter()
lock = threading.Lock()
stop = threading.Event()


def ask(picture: str) -> None:
    with Client(f"ipc://{SYSTEM_SOCKET}", timeout_ms=60_000) as client:
        while not stop.is_set():
            try:
                client.classify(picture)
                end = "answered"
            except JetselError as error:
                end = f"{error.code}: {error}"
            with lock:
                ended[end] += 1


threads = [threading.Thread(target=ask, args=(sys.argv[2],)) for _ in range(int(sys.argv[1]))]
for thread in threads:
    thread.start()
print("asking", flush=True)
sys.stdin.read()
stop.set()
for thread in threads:
    thread.join()
print(json.dumps(ended))
