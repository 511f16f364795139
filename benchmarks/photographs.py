"""The JPEG files that every measurement sends: the caller's own, or real photographs that scikit-image ships."""

from __future__ import annotations

import importlib.util
import tarfile
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

WIDTH_PX, HEIGHT_PX = 500, 375
JPEG_QUALITY = 90
SHIPPED = ("astronaut.png", "chelsea.png", "coffee.png", "motorcycle_left.png", "rocket.jpg")
JPEG_SUFFIXES = {".jpeg", ".jpg"}


@dataclass(frozen=True)
class Photographs:
    """Encoded photographs in the order in which all measurements take them, and where they came from."""

    files: list[bytes]
    source: str

    def __str__(self) -> str:
        sizes_kb = [len(data) / 1e3 for data in self.files]
        return f"{len(self.files)} {self.source}, {min(sizes_kb):.0f} to {max(sizes_kb):.0f} kB"


def photographs(given: Path | None) -> Photographs:
    """Return the JPEG files below a folder or in a tar archive as they are, or those of scikit-image at 500 x 375.

    Exits with a line that says what to do where there are none.
    """
    if given is None:
        return _shipped()
    files = _from_tar(given) if given.is_file() else _from_folder(given)
    if not files:
        raise SystemExit(f"no JPEG file in {given}: name a folder or a tar archive that has some")
    return Photographs(files, "JPEG files of the caller's")


def _from_folder(folder: Path) -> list[bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in JPEG_SUFFIXES)
    return [path.read_bytes() for path in paths]


def _from_tar(archive: Path) -> list[bytes]:
    files = []
    with tarfile.open(archive) as tar:
        for member in tar:
            handle = tar.extractfile(member) if Path(member.name).suffix.lower() in JPEG_SUFFIXES else None
            if handle is not None:
                files.append(handle.read())
    return files


def _shipped() -> Photographs:
    found = importlib.util.find_spec("skimage")  # found, not imported: only its files are wanted
    folder = Path(found.origin).parent / "data" if found and found.origin else None
    paths = [folder / name for name in SHIPPED if (folder / name).is_file()] if folder else []
    if not paths:
        raise SystemExit("the photographs come with scikit-image: pip install 'jetsel[demo]', or name some by --photos")
    return Photographs([_encoded(path) for path in paths], f"photographs of scikit-image at {WIDTH_PX} x {HEIGHT_PX}")


def _encoded(path: Path) -> bytes:
    """Bring one photograph to 500 x 375: scaled until it covers them, its middle cut out, encoded as JPEG."""
    picture = cv2.imread(str(path))
    assert picture is not None, path
    return _as_jpeg(_covering(picture))


def brought_to(data: bytes, size: tuple[int, int]) -> bytes:
    """Return an encoded image stretched to width and height in pixels, encoded as JPEG."""
    picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    return _as_jpeg(cv2.resize(picture, size, interpolation=cv2.INTER_CUBIC))


def _covering(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    height, width = picture.shape[:2]
    scale = max(WIDTH_PX / width, HEIGHT_PX / height)
    size = (max(WIDTH_PX, round(width * scale)), max(HEIGHT_PX, round(height * scale)))
    scaled = cv2.resize(picture, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC)
    left, top = (size[0] - WIDTH_PX) // 2, (size[1] - HEIGHT_PX) // 2
    return np.ascontiguousarray(scaled[top : top + HEIGHT_PX, left : left + WIDTH_PX])


def _as_jpeg(picture: NDArray[np.uint8]) -> bytes:
    is_good, data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    assert is_good
    return data.tobytes()
