"""The bare loop: the same decoding and the same engine with nothing around them, on one thread and on several."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import cv2

from benchmarks.window import Window
from jetsel import image
from jetsel.base.config import Config
from jetsel.engines.onnx import OnnxEngine
from jetsel.zoo import Model

_SERVER = Config().server
LIMITS = image.Limits(int(_SERVER.max_image_mb * 1e6), int(_SERVER.max_image_megapixels * 1e6))


class BareLoop:
    """One model, and photographs that it is shown in turn."""

    def __init__(self, model: Model, needed: int, files: Sequence[bytes], threads: int) -> None:
        cv2.setNumThreads(1)  # each loop is one thread: OpenCV would spread a resize over all cores
        self._spec = model.manifest.input
        self._needed = needed
        self._files = files
        name = model.manifest.name
        self._engine = OnnxEngine(name, model.path, concurrency=threads, threads=1)

    def once(self, number: int) -> None:
        """Decode the photograph of this number and run the model on it."""
        photograph = image.decode(self._files[number % len(self._files)], LIMITS, self._needed)
        self._engine.infer(image.model_input(photograph, self._spec))

    def measure(self, requests: int, threads: int, warm_up: int) -> Window:
        """Run `requests` loops over all threads together; latencies are those of single loops."""
        for number in range(warm_up):
            self.once(number)
        shares = [range(first, requests, threads) for first in range(threads)]
        latencies_ms: list[float] = []
        cpu_s, began_s = time.process_time(), time.perf_counter()
        if threads == 1:
            self._run(shares[0], latencies_ms.append)
        else:
            loops = [threading.Thread(target=self._run, args=(share, latencies_ms.append)) for share in shares]
            for loop in loops:
                loop.start()
            for loop in loops:
                loop.join()
        wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
        return Window(latencies_ms, wall_s, cpu_s, 0.0)

    def _run(self, numbers: range, took_ms: Callable[[float], None]) -> None:
        for number in numbers:
            began_s = time.perf_counter()
            self.once(number)
            took_ms((time.perf_counter() - began_s) * 1e3)

    def close(self) -> None:
        """Free the model."""
        self._engine.close()
