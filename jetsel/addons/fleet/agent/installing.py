"""Installs a plan: models, calibration and plan in one version folder, which is used as a whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import tomli_w

from jetsel.addons.fleet.config import Fleet
from jetsel.addons.fleet.documents import Bundle, Plan
from jetsel.addons.fleet.reading import fetch, read_bundle
from jetsel.addons.fleet.sources import RepositorySource
from jetsel.base.config import Config
from jetsel.base.errors import JetselError, RepositoryError
from jetsel.base.files import flush, sha256_of, write
from jetsel.base.process import python_command
from jetsel.base.sections import settings_in_effect
from jetsel.base.versions import Versions

PLAN = "plan.json"
CALIBRATION, SHIPPED = "calibration", "shipped"  # folders beside models: for this device, and as published
PROVE_S = 1800.0  # for timing and fitting on a board; builds of engines have the limit of `jetsel models build`

Memory = dict[str, dict[str, float | None]]


class ModelsRefusedError(JetselError):
    """The verified models do not run on this device; it needs another plan."""


class UnprovenError(JetselError):
    """The process that ran the models was killed, which is not their fault; another round may try again."""


@dataclass(frozen=True)
class Installer:
    """Installs plans in the agent's folder. config, config_file: the daemon's. fleet: limits of disk and memory."""

    folder: Path
    config: Config
    fleet: Fleet
    config_file: Path | None

    @property
    def versions(self) -> Versions:
        """The installed versions, with the previous one to roll back to."""
        return Versions(self.folder / "installed", RepositoryError, most_kept=2)

    def fetch(self, source: RepositorySource, plan: Plan, trusted: Sequence[str]) -> list[Path]:
        """Return a folder with the verified files of each planned family; raises RepositoryError.

        Nothing is downloaded that would exceed [fleet] storage_mb, or leave less than reserve_mb.
        """
        planned = [(read_bundle(source, one.bundle, trusted)[0], one.models) for one in plan.families]
        for bundle, models in planned:
            if lost := set(models) - {model.name for model in bundle.models}:
                names = ", ".join(sorted(lost))
                raise RepositoryError(f"the plan names {names}, which its bundle does not contain: plan again")
        self._downloads.mkdir(parents=True, exist_ok=True)
        versions = [self.versions.path(number) for number in self.versions.numbers()]
        existing = {sha256_of(path): path for folder in versions for path in folder.rglob("*") if path.is_file()}
        self._check_space(planned, existing)
        return [fetch(source, bundle, self._downloads, models, existing) for bundle, models in planned]

    def install(self, plan: Plan, fetched: Iterable[Path]) -> Memory:
        """Make a version, run and time its models, and use it; return the memory of each model.

        Raises ModelsRefusedError, UnprovenError, and RepositoryError if the disk fails; then nothing has changed.
        """
        memory: Memory = {}
        config = () if self.config_file is None else ("--config", self.config_file)

        def make(folder: Path) -> None:
            """Link the families into the version's folder, and load and time each model in a process of its own."""
            for place, (one, files) in enumerate(zip(plan.families, fetched, strict=True)):
                _link_family(files, folder / f"{place:03d}-{one.bundle.family}")
            write(folder / PLAN, msgspec.json.encode(plan))
            try:
                self._build_engines(folder)
                lines = _run_jetsel("agent", "prove", folder, *config, limit_s=PROVE_S)
                memory.update(msgspec.json.decode(lines, type=Memory))
            except ModelsRefusedError as fault:
                free_mb = shutil.disk_usage(self.folder).free / 1e6
                if free_mb >= max(1.0, self.fleet.reserve_mb):
                    raise
                raise RepositoryError(f"{fault}; only {free_mb:.1f} MB of disk are free: free some space") from fault

        self.versions.install(make)
        return memory

    def forget_downloads(self) -> None:
        """Remove downloaded files, after a verdict."""
        shutil.rmtree(self._downloads, ignore_errors=True)

    def installed(self) -> Plan | None:
        """Return the plan of the version in use, None if there is none; raises RepositoryError."""
        path = self.versions.path(self.versions.current()) / PLAN
        try:
            return msgspec.json.decode(path.read_bytes(), type=Plan)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as fault:
            raise RepositoryError(f"{path}: cannot be read ({fault}): remove {self.versions.folder}") from fault

    def used_bytes(self) -> int:
        """Return the size of all kept versions in bytes; shared files count once."""
        statuses = (path.lstat() for path in self.versions.folder.rglob("*"))
        return sum({status.st_ino: status.st_size for status in statuses}.values())

    @property
    def _downloads(self) -> Path:
        return self.folder / "downloads"

    def _check_space(self, planned: Sequence[tuple[Bundle, Sequence[str]]], existing: Mapping[str, Path]) -> None:
        files = {file.sha256: file for bundle, models in planned for file in bundle.files_for(models)}
        total_mb = sum(file.bytes for file in files.values()) / 1e6
        limits = self.fleet
        if total_mb > limits.storage_mb:
            raise RepositoryError(
                f"the plan takes {total_mb:.1f} MB, and fleet.storage_mb is {limits.storage_mb:g}: plan fewer models, "
                "or raise fleet.storage_mb"
            )
        missing = [file for sha256, file in files.items() if sha256 not in existing]
        needed_mb = sum(file.bytes + file.compressed_bytes for file in missing) / 1e6
        free_mb = shutil.disk_usage(self.folder).free / 1e6
        if needed_mb > free_mb - limits.reserve_mb:
            raise RepositoryError(
                f"the plan needs {needed_mb:.1f} MB of disk, and {free_mb:.1f} MB are free, of which fleet.reserve_mb "
                f"keeps {limits.reserve_mb:g}: free some space"
            )

    def _build_engines(self, folder: Path) -> None:
        """Build TensorRT engines if models need them; all engines of the device share one folder, by content.

        Raises ModelsRefusedError, and RepositoryError if the agent may not write to that folder.
        """
        models = self.config.models
        if "tensorrt" not in (models.backend, *models.backends.values()):
            return
        families = [str(path) for path in folder.iterdir() if path.is_dir()]
        engines = self.config.host.folder
        config = msgspec.structs.replace(
            self.config,
            models=msgspec.structs.replace(models, paths=families, starter=False, only=[]),
            host=msgspec.structs.replace(self.config.host, engines=str(engines)),
        )
        with tempfile.TemporaryDirectory(prefix="jetsel-") as scratch:
            file = Path(scratch, "jetsel.toml")
            file.write_text(tomli_w.dumps(settings_in_effect(config)), encoding="utf-8")
            try:
                _run_jetsel("models", "build", "--config", file, state=Path(scratch), limit_s=None)
            except ModelsRefusedError:
                _check_writable(engines)
                raise


def _check_writable(engines: Path) -> None:
    try:
        engines.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=engines):
            pass
    except OSError as fault:
        raise RepositoryError(
            f"{engines}: the agent may not write engines here ({fault.strerror}): docs/fleet.md shows how to allow it"
        ) from fault


def _run_jetsel(*arguments: object, state: Path | None = None, limit_s: float | None) -> str:
    """Run a command of jetsel at low priority and return its output.

    state: folder for its files; None: the same as this process's. Raises ModelsRefusedError if it fails, UnprovenError
    if it is killed.
    """
    command = ["nice", *python_command("jetsel", *map(str, arguments))]
    environment = os.environ if state is None else {**os.environ, "STATE_DIRECTORY": str(state)}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit_s,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ModelsRefusedError(f"the models were not run and timed within {limit_s:g} s") from None
    if done.returncode < 0:
        raise UnprovenError(f"signal {-done.returncode} ended the process that runs the models: see the kernel's log")
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        raise ModelsRefusedError(lines[-1])
    return done.stdout


def _link_family(files: Path, folder: Path) -> None:
    """Make a family's folder of links to the downloaded files; the published calibration gets its own folder."""
    shutil.copytree(files, folder, copy_function=os.link)
    if (folder / CALIBRATION).is_dir():
        flush((folder / CALIBRATION).rename(folder / SHIPPED))
    flush(folder)
