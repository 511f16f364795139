"""What may lie on the disk when a daemon reloads: good files, and every way in which they can be wrong."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jetsel.artefact.coding import read
from jetsel.artefact.installed import install
from jetsel.zoo import STARTER

FAMILY = "starter"


class Disk:
    """The files of one daemon: its configuration, a copy of the starter family, and calibrations of its owner."""

    def __init__(self, folder: Path) -> None:
        self.models = folder / "models"
        self.calibrations = folder / "calibrations"
        self.config: Path | None = None  # known once the daemon was launched
        self._kept = folder / "kept"
        shutil.copytree(STARTER, self._kept / "models")
        for _ in range(2):
            install(read(STARTER / "calibration"), self._kept / "calibrations", FAMILY)
        self.restore()

    @property
    def text(self) -> str:
        """The configuration to launch the daemon with."""
        return f'[models]\nstarter = false\npaths = ["{self.models}"]\ncalibrations = "{self.calibrations}"\n'

    def launched(self, config: Path) -> None:
        """Take note of the file that the daemon reads."""
        self.config = config
        shutil.copy(config, self._kept / "jetsel.toml")

    def restore(self) -> None:
        """Put everything right again."""
        for name in ("models", "calibrations"):
            shutil.rmtree(self._kept.parent / name, ignore_errors=True)
            shutil.copytree(self._kept / name, self._kept.parent / name, symlinks=True)
        if self.config is not None:
            shutil.copy(self._kept / "jetsel.toml", self.config)

    def configure(self, more: str) -> None:
        """Add these lines to the configuration."""
        with self.config.open("a", encoding="utf-8") as file:
            file.write(f"\n{more}\n")

    def configure_models(self, more: str) -> None:
        """Add these lines to the section that names the models."""
        self.config.write_text(self.config.read_text().replace("starter = false", f"starter = false\n{more}"))

    @property
    def artefact(self) -> Path:
        """The folder of the calibration in use."""
        return (self.calibrations / FAMILY / "current").resolve()


@dataclass(frozen=True)
class Upset:
    """One state of the disk. taken: whether the reload is to succeed."""

    name: str
    do: Callable[[Disk], None]
    taken: bool


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink()


def _cut_and_load_anew(disk: Disk) -> None:
    _cut(disk.models / "s.onnx")
    disk.configure_models("threads = 2")


def _dangle(disk: Disk) -> None:
    link = disk.calibrations / FAMILY / "current"
    link.unlink()
    link.symlink_to("77")


UPSETS = (
    Upset("nothing new", Disk.restore, True),
    Upset("another default policy", lambda disk: disk.configure('[policy]\ndefault = "single:s"'), True),
    Upset("every model loaded anew", lambda disk: disk.configure_models("threads = 2"), True),
    Upset("no TOML", lambda disk: disk.configure("[policy\ndefault ="), False),
    Upset("an unknown key", lambda disk: disk.configure('[policy]\ndefalt = "single:s"'), False),
    Upset("no configuration", lambda disk: _remove(disk.config) if disk.config else None, False),
    Upset("one model is gone", lambda disk: _remove(disk.models / "m.json", disk.models / "m.onnx"), True),
    Upset("weights are damaged", lambda disk: _cut(disk.models / "s.onnx"), True),
    Upset(
        "weights are damaged, and every model is to be loaded anew",
        _cut_and_load_anew,
        False,
    ),
    Upset("a manifest is damaged", lambda disk: _cut(disk.models / "s.json"), True),
    Upset("labels are gone", lambda disk: _remove(disk.models / "labels.tsv"), False),
    Upset("every model is gone", lambda disk: shutil.rmtree(disk.models), False),
    Upset("the calibration is cut off", lambda disk: _cut(disk.artefact / "manifest.json"), True),
    Upset("the calibration's link leads nowhere", _dangle, True),
)
