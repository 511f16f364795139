"""The newest frame of a source: one thread reads, keeps only that frame, and reopens the source when it is lost."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

import numpy as np

from jetsel.addons.cameras.source import Reader, SourceEndedError, StreamEndedError, reason_of

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
_END_S = 3.0  # wait at the end for a camera that hangs


class Newest:
    """Reads a source in a thread until `close`. n_read: frames so far. is_over: whether a file has ended.

    n_back: how often frames came again after the source was away. A stream that ends after a frame and opens again was
    not away. last_s: time.monotonic() of the last frame, or of the start. open_reader: opens the source; it receives
    the event that `close` sets. on_change(is_available, reason, pause_s): the thread calls it when the source becomes
    available or is lost. reason: why it was lost, or empty. pause_s: seconds until the next try.
    """

    def __init__(
        self, open_reader: Callable[[threading.Event], Reader], on_change: Callable[[bool, str, float], None]
    ) -> None:
        self._open, self._on_change = open_reader, on_change
        self._stop, self._changed = threading.Event(), threading.Condition()
        self._frame: np.ndarray | None = None
        self._is_available: bool | None = None  # None: not known yet
        self._has_had_frame = False  # whether a frame ever came
        self.is_over = False
        self._no_decode_until_s = 0.0
        self.n_read = self.n_back = 0
        self.last_s = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="frames", daemon=True)
        self._thread.start()

    def take_frame(self, timeout_s: float, rest_s: float = 0.0) -> np.ndarray | None:
        """Return the newest frame that was not taken yet, or None if none came in time.

        rest_s: time for which no further frame is decoded, because none will be needed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._frame is not None or self.is_over, timeout_s)
            frame, self._frame = self._frame, None
            if frame is not None:
                self._no_decode_until_s = time.monotonic() + rest_s
            return frame

    def give_back(self, frame: np.ndarray) -> None:
        """Make a taken frame the newest again, unless a newer one came."""
        with self._changed:
            self._no_decode_until_s = 0.0
            if self._frame is None and self._is_available:
                self._frame = frame

    def close(self) -> bool:
        """Stop reading; return False if the source hangs, so that only the end of the process releases it."""
        self._stop.set()
        self._thread.join(_END_S)
        return not self._thread.is_alive()

    def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._stop.is_set():
            before_s = self.last_s
            try:
                with contextlib.closing(self._open(self._stop)) as reader:
                    self._read(reader)
            except SourceEndedError:
                break
            except Exception as error:  # whatever a decoder raises, the source is opened again
                had_frame = self.last_s > before_s
                pause_s = FIRST_PAUSE_S if had_frame else pause_s
                if not (self._stop.is_set() or (had_frame and isinstance(error, StreamEndedError))):
                    self._is_available = False
                    self._set_frame(None)  # the last frame is out of date
                    with contextlib.suppress(Exception):  # the listener itself may have failed
                        self._on_change(False, reason_of(error), pause_s)
                self._stop.wait(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        with self._changed:
            self.is_over = True
            self._changed.notify_all()

    def _read(self, reader: Reader) -> None:
        """Read frames until `close`, and report when the source becomes available; raises what the reader raises.

        Frames that come during the rest of `take` are counted, but not decoded.
        """
        while not self._stop.is_set():
            if not reader.grab():
                continue
            self.n_read += 1
            is_wanted = time.monotonic() >= self._no_decode_until_s
            frame = reader.retrieve() if is_wanted else None
            if is_wanted and frame is None:
                continue
            self.last_s = time.monotonic()
            if not self._is_available:
                self.n_back += self._has_had_frame
                self._is_available = self._has_had_frame = True
                self._on_change(True, "", 0.0)
            if frame is not None:
                self._set_frame(frame)

    def _set_frame(self, frame: np.ndarray | None) -> None:
        with self._changed:
            if frame is not None and time.monotonic() < self._no_decode_until_s:
                return  # another frame was taken while this one was decoded
            self._frame = frame
            self._changed.notify_all()
