"""Work beside the requests that takes what these leave of the processor's cores.

Linux keeps a nice value for each thread (setpriority(2), "C library/kernel differences"), and a thread hands its own on
to those that it starts, such as the pool of an inference session, which is to serve requests as fast as any. So they
are brought back when the work is done. That takes CAP_SYS_NICE or RLIMIT_NICE, which root has and the unit gives; where
this process may not, only work that starts no thread stands behind.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

NICENESS = 10  # behind the requests: a tenth of a core that both want (sched(7)); see docs/reliability.md, "Reloads"
LEAST_URGENT = 19

Result = TypeVar("Result")


def aside(work: Callable[[], Result], *, starts_threads: bool) -> Result:
    """Return what the work returns, or raise what it raises; a thread of its own does it, behind all others.

    starts_threads: whether some may be left when it is done. No process may be started by it, nor a thread that starts
    one: these would stay behind.
    """
    ended: Future[Result | _Refused] = Future()
    context = contextvars.copy_context()
    thread = threading.Thread(target=_run, args=(context, work, starts_threads, ended), name="aside", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no thread can be had
        return work()
    result = ended.result()
    return work() if isinstance(result, _Refused) else result


class _Refused:
    """Says that no thread of this process may be brought back."""


def _run(
    context: contextvars.Context, work: Callable[[], Result], starts_threads: bool, ended: Future[Result | _Refused]
) -> None:
    try:
        ended.set_result(_behind(context, work, starts_threads))
    except BaseException as error:  # whatever it is, it is the caller's, who waits for it
        ended.set_exception(error)


def _behind(context: contextvars.Context, work: Callable[[], Result], starts_threads: bool) -> Result | _Refused:
    me = threading.get_native_id()
    usual = os.getpriority(os.PRIO_PROCESS, me)
    behind = min(LEAST_URGENT, usual + NICENESS)
    if not starts_threads:
        os.setpriority(os.PRIO_PROCESS, me, behind)  # this thread ends with the work
        return context.run(work)
    try:
        os.setpriority(os.PRIO_PROCESS, me, behind)
        os.setpriority(os.PRIO_PROCESS, me, usual)
    except PermissionError:
        return _Refused()
    before = _threads()
    os.setpriority(os.PRIO_PROCESS, me, behind)
    try:
        return context.run(work)
    finally:
        _bring_back(_threads() - before, behind, usual)


def _threads() -> set[int]:
    return {int(task.name) for task in Path("/proc/self/task").iterdir()}


def _bring_back(threads: set[int], behind: int, usual: int) -> None:
    for thread in threads:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            if os.getpriority(os.PRIO_PROCESS, thread) == behind:
                os.setpriority(os.PRIO_PROCESS, thread, usual)
