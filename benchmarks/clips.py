"""Clips of a camera that stands still, made from photographs, so that it is known when something changes.

A clip shows a scene of 480 x 360 at 10 frames a second, with a sensor's noise that is new in each frame.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

WIDTH_PX, HEIGHT_PX, FPS = 480, 360, 10
DAY_LEVELS, NIGHT_LEVELS = 4.0, 12.0  # standard deviation of the noise
NIGHT = "night"
_NOISES = 16

Frame = NDArray[np.uint8]
Draw = Callable[[int], Frame]


@dataclass(frozen=True)
class MadeClip:
    """name: what happens in it. events_s: when an object or scene comes or goes, of the clip's time in seconds."""

    name: str
    n_frames: int
    events_s: list[float]
    draw: Draw
    seed: int
    noise_levels: float = DAY_LEVELS

    def frames(self) -> Iterator[tuple[float, Frame]]:
        """Yield each frame's time in seconds and its pixels, (360, 480, 3) uint8 BGR; each time the same."""
        drawn = np.random.default_rng(self.seed)
        noises = drawn.normal(0, self.noise_levels, (_NOISES, HEIGHT_PX, WIDTH_PX, 3)).astype(np.float32)
        for number in range(self.n_frames):
            down, across = drawn.integers(0, (HEIGHT_PX, WIDTH_PX))
            noise = np.roll(noises[drawn.integers(_NOISES)], (down, across), (0, 1))
            noisy = np.clip(self.draw(number) + noise + 0.5, 0, 255)
            yield number / FPS, noisy.astype(np.uint8)


def made_clips(files: Sequence[bytes], seconds: int, seed: int) -> list[MadeClip]:
    """Return one clip of each kind. files: encoded photographs, three at least; raises SystemExit if they are fewer."""
    if len(files) < 3:
        raise SystemExit("the clips need three photographs at least: name a folder with more by --photos")
    drawn = np.random.default_rng(seed)
    pictures = [_scene(files[number]) for number in drawn.permutation(len(files))]
    scene, others = pictures[0], pictures[1:]
    n_frames = seconds * FPS
    faint = _visits(n_frames, others, drawn, (0.005, 0.02), 0.4)
    small = _visits(n_frames, others, drawn, (0.01, 0.05))
    large = _visits(n_frames, others, drawn, (0.25, 0.6))
    kinds: list[tuple[str, list[float], Draw]] = [
        ("stands still", [], lambda _: scene),
        (NIGHT, [], lambda _: _times(scene, 0.3)),
        ("light changes slowly", [], lambda number: _lit(scene, number)),
        ("faint object of 0.5 to 2 %", faint.events_s, lambda number: faint.on(scene, number)),
        ("object of 1 to 5 %", small.events_s, lambda number: small.on(scene, number)),
        ("object of 25 to 60 %", large.events_s, lambda number: large.on(scene, number)),
        ("object of 25 to 60 %, light", large.events_s, lambda number: _lit(large.on(scene, number), number)),
        ("leaves move", [], lambda number: _leaves(scene, number)),
        ("leaves, object of 25 to 60 %", large.events_s, lambda number: large.on(_leaves(scene, number), number)),
    ]
    shown, switches_s = _switches(n_frames, len(pictures), drawn)
    kinds.append(("scene switches", switches_s, lambda number: pictures[shown[number]]))
    return [
        MadeClip(name, n_frames, events_s, draw, seed, NIGHT_LEVELS if name == NIGHT else DAY_LEVELS)
        for name, events_s, draw in kinds
    ]


def _scene(data: bytes) -> Frame:
    picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None
    return np.asarray(cv2.resize(picture, (WIDTH_PX, HEIGHT_PX), interpolation=cv2.INTER_AREA), np.uint8)


@dataclass(frozen=True)
class _Visits:
    """Objects that come and go.

    objects: pixels, left and top. which: the number of each frame's object; -1: none. strength: 1 hides what is behind.
    """

    objects: list[tuple[Frame, int, int]]
    which: list[int]
    events_s: list[float]
    strength: float

    def on(self, scene: Frame, number: int) -> Frame:
        """Return the scene with the object of this frame."""
        if self.which[number] < 0:
            return scene
        picture, left, top = self.objects[self.which[number]]
        shown: Frame = scene.copy()
        part = shown[top : top + picture.shape[0], left : left + picture.shape[1]]
        part[:] = cv2.addWeighted(picture, self.strength, part, 1 - self.strength, 0)
        return shown


def _visits(
    n_frames: int,
    pictures: Sequence[Frame],
    drawn: np.random.Generator,
    shares: tuple[float, float],
    strength: float = 1.0,
) -> _Visits:
    """Draw objects that stand for 2 to 6 s, 2 to 8 s apart. shares: of the frame that they cover."""
    visits, number = _Visits([], [-1] * n_frames, [], strength), int(drawn.integers(2 * FPS, 4 * FPS))
    while number < n_frames:
        end = min(n_frames, number + int(drawn.integers(2 * FPS, 6 * FPS)))
        side = float(np.sqrt(drawn.uniform(*shares)))
        width, height = round(WIDTH_PX * side), round(HEIGHT_PX * side)
        picture = cv2.resize(
            pictures[int(drawn.integers(len(pictures)))], (width, height), interpolation=cv2.INTER_AREA
        )
        left, top = drawn.integers(0, (WIDTH_PX - width + 1, HEIGHT_PX - height + 1))
        visits.which[number:end] = [len(visits.objects)] * (end - number)
        visits.objects.append((np.asarray(picture, np.uint8), int(left), int(top)))
        visits.events_s.extend(at / FPS for at in (number, end) if at < n_frames)
        number = end + int(drawn.integers(2 * FPS, 8 * FPS))
    return visits


def _switches(n_frames: int, n_pictures: int, drawn: np.random.Generator) -> tuple[list[int], list[float]]:
    """Return which picture each frame shows, and when that changes: every 4 to 10 s."""
    shown: list[int] = []
    events_s: list[float] = []
    while len(shown) < n_frames:
        now = int(drawn.integers(n_pictures))
        if shown and now == shown[-1]:
            continue
        if shown:
            events_s.append(len(shown) / FPS)
        shown += [now] * int(drawn.integers(4 * FPS, 10 * FPS))
    return shown[:n_frames], events_s


def _lit(picture: Frame, number: int) -> Frame:
    """Return the picture in light that falls to 60 % and rises again within 40 s, as clouds have it."""
    return _times(picture, 0.8 + 0.2 * math.cos(2 * math.pi * number / (40 * FPS)))


def _times(picture: Frame, gain: float) -> Frame:
    return np.asarray(cv2.convertScaleAbs(picture, alpha=gain), np.uint8)


def _leaves(picture: Frame, number: int) -> Frame:
    """Return the picture with its upper third shaken by up to 5 pixels, each place at a pace of its own."""
    y, x = np.mgrid[0 : HEIGHT_PX // 3, 0:WIDTH_PX].astype(np.float32)
    across = x + 5 * np.sin(2 * np.pi * (number / 7 + x / 45 + y / 31))
    down = y + 5 * np.sin(2 * np.pi * (number / 9 + x / 37 + y / 53))
    shown: Frame = picture.copy()
    shown[: HEIGHT_PX // 3] = cv2.remap(
        picture, across.astype(np.float32), down.astype(np.float32), cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT
    )
    return shown
