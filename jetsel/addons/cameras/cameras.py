"""All cameras of one process, each with its own threads, so that one that hangs does not delay the others."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence

from jetsel.addons.cameras.config import Camera
from jetsel.addons.cameras.settings import WatchContext, WatchSettings
from jetsel.addons.cameras.source import reason_of
from jetsel.addons.cameras.watch import Watch, run_in_parallel
from jetsel.base.errors import ConfigError, JetselError
from jetsel.gateway import camera_states

_AGAIN_S = 30.0  # pause after an error of a camera, such as a family that is not served
_END_S = 12.0  # for a request under way


class Running:
    """One watched camera; it begins at once and runs until `end`. Raises ConfigError for unusable settings."""

    def __init__(self, camera: Camera, context: WatchContext) -> None:
        self.camera, self._context = camera, context
        self.watch = Watch(WatchSettings(camera, context))
        self.error: JetselError | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"camera {camera.name}", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether a file was played to its end, or an error has ended it."""
        return not self._thread.is_alive()

    def end(self) -> bool:
        """Stop it and wait for its end; return False if the source hangs."""
        self._stopping.set()
        self.watch.stop()
        self._thread.join(_END_S)
        return self.watch.close() and not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.watch.run()
                return
            except Exception as error:  # whatever fails, the camera is tried again
                if self._context.gives_up and isinstance(error, JetselError):
                    self.error = error
                    return
                with contextlib.suppress(Exception):  # the listener may fail, too
                    self.watch.tell(f"{reason_of(error)}; next try in {_AGAIN_S:g} s")
            self._stopping.wait(_AGAIN_S)


class Cameras:
    """Runs cameras until each is over or `end`. Raises ConfigError for an unusable one, before any starts."""

    def __init__(self, cameras: Sequence[Camera], context: WatchContext) -> None:
        self._context = context
        self._running: dict[str, Running] = {}
        self._has_ended = True  # whether all cameras that a reload stopped have ended
        self.change_to(cameras, context)
        self._stopping = threading.Event()
        self._writer = threading.Thread(target=self._write, name="states", daemon=True)
        self._writer.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait, and return whether every camera is over; raises the error that ended one."""
        time.sleep(timeout_s)
        for running in self._running.values():
            if running.is_over and running.error is not None:
                raise running.error
        return all(running.is_over for running in self._running.values())

    def change_to(self, cameras: Sequence[Camera], context: WatchContext) -> list[str]:
        """Watch these cameras from now on; return the names of those that began, ended or changed.

        Unchanged cameras continue. Raises ConfigError, and changes nothing, if one cannot be used.
        """
        self._check(cameras, context)
        is_same_context = context == self._context
        by_name = {camera.name: camera for camera in cameras}
        gone = [one for name, one in self._running.items() if not is_same_context or by_name.get(name) != one.camera]
        self._has_ended &= all(run_in_parallel(Running.end, gone))
        for one in gone:
            del self._running[one.camera.name]
        begun = {name: camera for name, camera in by_name.items() if name not in self._running}
        self._context = context
        self._running |= {name: Running(camera, context) for name, camera in begun.items()}
        return list(dict.fromkeys([*(one.camera.name for one in gone), *begun]))

    def end(self) -> bool:
        """Stop all; return False if a source hangs, so that only the end of the process releases it."""
        self._stopping.set()
        has_ended = run_in_parallel(Running.end, self._running.values())
        self._writer.join(_END_S)
        return self._has_ended and all(has_ended)

    @staticmethod
    def _check(cameras: Sequence[Camera], context: WatchContext) -> None:
        taken: dict[str, str] = {}
        for camera in cameras:
            for region, topic in WatchSettings(camera, context).topics.items():
                name = f"camera {camera.name}" if region is None else f"region {region} of camera {camera.name}"
                if topic in taken and context.broker is not None:
                    raise ConfigError(f"{taken[topic]} and {name} share the MQTT topic jetsel/{topic}: rename one")
                taken[topic] = name

    def _write(self) -> None:
        """Write the states of the cameras for the gateway; report each problem once."""
        path, trouble = camera_states.own_path(), ""
        if path is None:
            return
        while not self._stopping.wait(camera_states.WRITE_INTERVAL_S):
            before, trouble = trouble, ""
            try:
                running = list(self._running.values())  # a copy: a reload may change it
                camera_states.write(path, [state for one in running for state in one.watch.states()])
            except OSError as error:
                trouble = f"{path}: {error.strerror}: pages and metrics show no cameras"
                if trouble != before:
                    self._context.on_message(trouble)
        with contextlib.suppress(OSError):
            path.unlink()
