"""Measures windows with zeus (ML.ENERGY, 0.16.0): run by a Python that has it, with a Jetson's tree at /sys.

Reads the length of a window in seconds, a line each, and answers with its begin, end and energy as JSON. zeus is used
as it is, but for the question whether this is a Jetson: it looks for NVIDIA's files in /etc and /usr, which a simulated
sysfs has not.
"""

from __future__ import annotations

import json
import sys
import time

from zeus.device.soc import jetson


def main() -> None:
    """Answer until the input ends."""
    jetson.jetson_is_available = lambda: True
    board = jetson.Jetson()
    board.get_total_energy_consumption()  # its process is up
    for line in sys.stdin:
        board.begin_window("window")
        begin_ns = time.monotonic_ns()
        end_ns = begin_ns + round(float(line) * 1e9)
        time.sleep(max(0.0, (end_ns - time.monotonic_ns()) * 1e-9 - 0.002))
        while time.monotonic_ns() < end_ns:
            pass
        end_ns = time.monotonic_ns()
        energy_mj = board.end_window("window").total_energy_mj
        print(json.dumps({"begin_ns": begin_ns, "end_ns": end_ns, "energy_mj": energy_mj}), flush=True)


if __name__ == "__main__":
    main()
