"""Reads the state of the board: from jetson-stats if configured, otherwise from the kernel's files.

jetson-stats is AGPL: only the public interface of its client jtop is used, and only if [power] jtop = true. Its power
values are not used; jetsel reads the rails itself.
"""

from __future__ import annotations

import importlib
import multiprocessing
import queue
import re
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from multiprocessing.managers import RemoteError
from pathlib import Path
from statistics import fmean
from typing import Any

from msgspec import Struct

from jetsel.base.errors import pip_install
from jetsel.power import sysfs
from jetsel.power.finding import PowerSettings
from jetsel.power.machine import clocks, throttling
from jetsel.power.machine.facts import BoardFacts, Fact, Known
from jetsel.power.sysfs import read_text, root_of

INTERVAL_S = 1.0  # jtop's default; the service sends to all clients at the rate of the fastest
RETRY_S = 30.0
SILENT_S = 5.0

_BROKEN = (OSError, EOFError, queue.Empty, RemoteError, multiprocessing.ProcessError)
"""Errors of a client beside JtopException: a lost socket, a missing reply, another Python version."""

_MISSHAPEN = (AttributeError, KeyError, TypeError, ValueError)  # from a service before 4.2


class JtopReport(Struct, frozen=True, kw_only=True):
    """One report of the jetson-stats service; None: unknown. power_mode: as "0 MAXN". gpu_load: 0 to 1."""

    version: str
    board: str | None
    l4t: str | None
    jetpack: str | None
    power_mode: str | None
    gpu_load: float | None


class JtopService:
    """Client of the jetson-stats service (jtop): a thread reads its reports, so that callers do not wait for it."""

    def __init__(self, retry_s: float = RETRY_S, silent_s: float = SILENT_S) -> None:
        """Start the thread. retry_s: pause after a failure. silent_s: age at which a report expires."""
        self._retry_s = retry_s
        self._silent_s = silent_s
        self._latest: tuple[float, JtopReport] | None = None  # time.monotonic() and the report
        self._reason = "the service of jetson-stats has not answered yet"
        self._answered = threading.Event()  # set by the first report or failure
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="jtop", daemon=True)
        self._thread.start()

    def last(self, wait_s: float = 0.0) -> JtopReport | str:
        """Return the last report, or a text why there is none. wait_s: longest wait for the first report."""
        self._answered.wait(wait_s)
        latest = self._latest
        if latest is None:
            return self._reason
        age_s = time.monotonic() - latest[0]
        if age_s > self._silent_s:
            return f"the service of jetson-stats has sent nothing for {age_s:.0f} s; see: systemctl status jtop"
        return latest[1]

    def close(self) -> None:
        """Disconnect from the service; the thread ends after the next report."""
        self._closed.set()

    def _work(self) -> None:
        """Connect, read reports until the connection fails, and connect again: the thread's main function."""
        try:
            module = importlib.import_module("jtop")
        except (ImportError, OSError) as error:
            self._record_failure(f"jetson-stats does not import: {error}; install it: {pip_install('jetson')}")
            return
        while not self._closed.is_set():
            try:
                self._listen(module)
                self._record_failure("the service of jetson-stats stopped answering; see: systemctl status jtop")
            except (module.JtopException, *_BROKEN, *_MISSHAPEN) as error:
                fault = f"{type(error).__name__}: {' '.join(str(error).split())}"
                self._record_failure(f"jetson-stats {module.__version__}: {fault}; see: systemctl status jtop")
            self._closed.wait(self._retry_s)

    def _listen(self, module: Any) -> None:
        with module.jtop(interval=INTERVAL_S) as client:
            hardware = client.board["hardware"]
            while not self._closed.is_set() and client.ok():
                self._latest = time.monotonic(), _report_of(module, client, hardware)
                self._answered.set()

    def _record_failure(self, reason: str) -> None:
        self._latest, self._reason = None, reason
        self._answered.set()


def _report_of(module: Any, client: Any, hardware: Mapping[str, Any]) -> JtopReport:
    """Return a report from the module jtop, its connected client, and the client's table of hardware names."""
    mode = client.nvpmodel
    gpus = list(client.gpu.values())
    integrated = [gpu for gpu in gpus if gpu["type"] == "integrated"] or gpus
    load_percent = integrated[0]["status"].get("load") if integrated else None
    return JtopReport(
        version=str(module.__version__),
        board=hardware.get("Model") or None,
        l4t=hardware.get("L4T") or None,
        jetpack=hardware.get("Jetpack") or None,
        power_mode=None if mode is None else f"{mode.id} {mode.name}",
        gpu_load=None if load_percent is None else float(load_percent) / 100,
    )


JTOP_S = 10.0  # jetson-stats searches the board's libraries before its first report
JTOP_OFF = "not read: power.jtop is false"
BY_JTOP = "jetson-stats reports it, if power.jtop is true"


class Machine:
    """Reads the state of the board, in one thread. Keep it open between reads, as jetson-stats starts slowly."""

    def __init__(self, sysfs: Path | str = "/sys", jtop: bool = False) -> None:
        """sysfs: its root; proc, etc and var are searched beside it. jtop: True uses jetson-stats too."""
        self._sysfs = root_of(str(sysfs))
        self._root = self._sysfs.parent
        self._service = JtopService() if jtop else None

    def facts(self, wait_s: float = 0.0) -> BoardFacts:
        """Return the current state. wait_s: longest wait for the first report of jetson-stats.

        The kernel's files come first for board, release and power mode: measurements are stored under these names,
        which must not change with jetson-stats. It fills gaps, and comes first for the GPU's load.
        """
        report = JTOP_OFF if self._service is None else self._service.last(wait_s)
        from_jtop = None if isinstance(report, str) else report
        cpu, gpu = clocks.cpu(self._sysfs), clocks.gpu(self._sysfs)
        load = None if from_jtop is None else from_jtop.gpu_load
        return BoardFacts(
            board=_or_from_jtop(board(self._sysfs), from_jtop.board if from_jtop else None),
            l4t=_or_from_jtop(l4t(self._root), from_jtop.l4t if from_jtop else None),
            jetpack=_or_from_jtop(Fact(None, BY_JTOP), from_jtop.jetpack if from_jtop else None),
            power_mode=_or_from_jtop(power_mode(self._root), from_jtop.power_mode if from_jtop else None),
            jetson_clocks=clocks.pinned(cpu, gpu),
            cores=clocks.cores(self._sysfs),
            cpu_clocks=cpu,
            gpu_clocks=gpu,
            gpu_load=clocks.gpu_load(self._sysfs) if load is None else Known(load),
            zones_c=throttling.zones_c(self._sysfs),
            slowed=throttling.slowed(self._sysfs),
            alarms=throttling.alarms(self._sysfs),
            battery_percent=battery_percent(self._sysfs),
            jtop=Fact(None, report) if isinstance(report, str) else Fact(report.version),
        )

    def close(self) -> None:
        """Disconnect from jetson-stats, if it is used."""
        if self._service is not None:
            self._service.close()


def read_facts(power: PowerSettings) -> BoardFacts:
    """Return the state of the configured board, read once."""
    with closing(Machine(power.sysfs, power.jtop)) as machine:
        return machine.facts(wait_s=JTOP_S if power.jtop else 0.0)


def _or_from_jtop(from_files: Fact, from_jtop: str | None) -> Fact:
    return Fact(from_jtop) if from_files.value is None and from_jtop else from_files


_RELEASE = re.compile(r"# R(\d+) \(release\), REVISION: ([\d.]+)")
_MODE = re.compile(r"pmode:\s*(\d+)")


def board(sysfs: Path) -> Fact:
    """Return the board's name: in the device tree (every Jetson), otherwise maker and product (DMI) and processor."""
    root = sysfs.parent
    tree = read_text(sysfs / "firmware/devicetree/base/model") or read_text(root / "proc/device-tree/model")
    if tree:
        return Fact(tree)
    names = [name for file in ("sys_vendor", "product_name") if (name := read_text(sysfs / "class/dmi/id" / file))]
    cpuinfo = read_text(root / "proc/cpuinfo")
    processor = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    cores = len(re.findall(r"^processor\s*:", cpuinfo, re.MULTILINE))
    if processor:
        names.append(f"{processor[1].strip()}, {cores} cores")
    return Fact(" ".join(names)) if names else Fact(None, "no device tree, DMI or processor name")


def l4t(root: Path) -> Fact:
    """Return the release of NVIDIA's Linux for Tegra: `# R32 (release), REVISION: 7.1, ...` is 32.7.1. root: of etc."""
    release = read_text(root / "etc/nv_tegra_release")
    match = _RELEASE.match(release)
    if match:
        return Fact(f"{match[1]}.{match[2]}")
    reason = f"{release[:80]!r} names no release" if release else "no Linux for Tegra: no /etc/nv_tegra_release"
    return Fact(None, reason)


def power_mode(root: Path) -> Fact:
    """Return the power mode of NVIDIA's tool nvpmodel, as "0 MAXN". root: folder of its etc and var."""
    status = _MODE.search(read_text(root / "var/lib/nvpmodel/status"))
    if status is None:
        return Fact(None, "no nvpmodel status")
    number = int(status[1])
    match = re.search(rf"POWER_MODEL\s+ID={number}\s+NAME=([^\s>]+)", read_text(root / "etc/nvpmodel.conf"))
    return Fact(f"{number} {match[1]}" if match else str(number))


def battery_percent(root: Path) -> float | None:
    """Return the mean charge of the board's batteries, 0 to 100; None if there is none. root: of sysfs.

    A battery with the `scope` Device supplies a mouse or a keyboard (drivers/power/supply/power_supply_sysfs.c).
    """
    folder = root / "class/power_supply"
    batteries = [folder / name for name in sysfs.list_names(folder) if _is_board_battery(folder / name)]
    percents = [percent for battery in batteries if (percent := sysfs.read_int(battery / "capacity")) is not None]
    return fmean(percents) if percents else None


def _is_board_battery(supply: Path) -> bool:
    is_battery = sysfs.read_text(supply / "type") == "Battery" and sysfs.read_text(supply / "scope") != "Device"
    return is_battery and sysfs.read_text(supply / "present") != "0"
