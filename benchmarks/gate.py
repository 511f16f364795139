"""Which gate of `jetsel watch` skips how many frames, and what it misses. `python -m benchmarks.gate [CLIPS...]`.

A real daemon classifies each frame of a clip once. The gates are then replayed over the clip. Beside the given clips,
the benchmark makes some from photographs (benchmarks/clips.py), in which it is known when something changes.

An event is a settled change of the label if every frame is asked. A known change is found if a frame is asked within a
second. "old": the gate before blocks, which compared the mean difference of the whole frame with 1.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import cv2
import numpy as np

from benchmarks.clips import made_clips
from benchmarks.conditions import conditions
from benchmarks.gates import Judged, Recorded, Replay, clip_frames, judged, record, replayed
from benchmarks.photographs import photographs
from benchmarks.report import table
from benchmarks.servers import daemon
from jetsel.addons.cameras.config import DEFAULT_GATE
from jetsel.addons.cameras.gate import Gate, GateSetting, gate_of
from jetsel.client import Client
from jetsel.wire import Answer

OLD_BELOW = 1.0  # grey levels, the mean of the whole frame
FOUND_S = 1.0
HEADINGS = (
    "clip, frames judged",
    "frames asked, %",
    "agreement, %",
    "events missed",
    "delay, median, s",
    "largest, s",
    "changes found",
)
STAY, ASK_AGAIN_S, LATE_S = 3, 30.0, 1.0  # `jetsel watch`'s defaults, and the delay that an event may have


class OldGate(Gate):
    """The gate that blocks replaced: the mean absolute difference of gray copies."""

    def __init__(self, ask_again_s: float) -> None:
        super().__init__(GateSetting("blocks", OLD_BELOW), ask_again_s)

    def skips(self, frame: np.ndarray, now_s: float) -> bool:
        """As the class that it replaces."""
        super().skips(frame, now_s)
        if self._answered is None or now_s - self._answered_s >= self._ask_again_s:
            return False
        return float(cv2.absdiff(self._seen, self._answered).mean()) < OLD_BELOW


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description=__doc__)
    parser.add_argument("clips", nargs="*", type=Path, metavar="CLIPS", help="video files")
    parser.add_argument("--photos", type=Path, help="a folder of photographs for made clips (scikit-image's)")
    parser.add_argument("--seconds", type=int, default=120, help="length of a made clip; 0 makes none")
    parser.add_argument("--model", help="one model of the starter family (its policy)")
    parser.add_argument("--seed", type=int, default=2026, help="of the made clips")
    parser.add_argument("--sweep", action="store_true", help="also print each threshold of blocks over all clips")
    args = parser.parse_args()
    print("\n".join(conditions()), flush=True)
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="jetsel-")))
        client = running.enter_context(Client(running.enter_context(daemon(folder, "workers = 1\n")).address))

        def ask(frame: np.ndarray) -> Answer:
            return client.classify(frame, top_k=1, on_doubt="use", model=args.model)

        recordings, rows = [], []
        for name, frames, changes_s in _clips(args.clips, args.photos, args.seconds, args.seed):
            print(f"- {name}", file=sys.stderr, flush=True)
            recorded = record(frames, ask)
            recordings.append((recorded, changes_s))
            rows.append(_row(name, recorded, changes_s))
    print("\nEach cell: old / default / none\n")
    print("\n".join(table(HEADINGS, rows)))
    if args.sweep:
        print("\n" + "\n".join(_sweep(recordings)))


def _clips(
    paths: Sequence[Path], photos: Path | None, seconds: int, seed: int
) -> Iterator[tuple[str, Iterable[tuple[float, np.ndarray]], list[float] | None]]:
    """Yield each clip's name, frames, and when it changes, if that is known."""
    for path in paths:
        yield path.name, clip_frames(path), None
    for clip in made_clips(photographs(photos).files, seconds, seed) if seconds else ():
        yield clip.name, clip.frames(), clip.events_s


def _row(name: str, recorded: Recorded, changes_s: list[float] | None) -> list[str]:
    full = _replay(recorded, None)
    columns = []
    for setting in (OLD_BELOW, gate_of(DEFAULT_GATE, ""), None):
        replay = _replay(recorded, setting)
        columns.append([*_figures(judged(replay, full, LATE_S)), _found(recorded, replay, changes_s)])
    cells = [" / ".join(values) for values in zip(*columns, strict=True)]
    cells[2] += f" of {len(full.events)}"
    cells[-1] = "-" if changes_s is None else f"{cells[-1]} of {len(_within(recorded, changes_s))}"
    return [f"{name}, {len(recorded.times_s)}", *cells]


def _replay(recorded: Recorded, setting: GateSetting | float | None) -> Replay:
    """Replay a setting; a number: the old gate."""
    gate = OldGate(ASK_AGAIN_S) if isinstance(setting, float) else Gate(setting, ASK_AGAIN_S)
    return replayed(recorded, gate, STAY)


def _figures(result: Judged) -> list[str]:
    median = f"{statistics.median(result.delays_s):.2g}" if result.delays_s else "-"
    asked, agreement = f"{100 * result.frames_asked / result.frames:.1f}", f"{100 * result.agreement:.4g}"
    return [asked, agreement, str(result.events_missed), median, f"{result.largest_delay_s:.2g}"]


def _within(recorded: Recorded, changes_s: Iterable[float]) -> list[float]:
    """Return the changes that have a second of the recorded frames after them."""
    begin_s, end_s = recorded.times_s[0], recorded.times_s[-1]
    return [change_s for change_s in changes_s if begin_s < change_s <= end_s - FOUND_S]


def _found(recorded: Recorded, replay: Replay, changes_s: list[float] | None) -> str:
    """Return how many of the changes were found; "-" if none is known."""
    asked_s = np.array([now_s for now_s, asked in zip(recorded.times_s, replay.asked, strict=True) if asked])
    known_s = _within(recorded, changes_s or ())
    found = [bool(((asked_s >= at_s) & (asked_s <= at_s + FOUND_S)).any()) for at_s in known_s]
    return "-" if changes_s is None else str(sum(found))


def _sweep(recordings: Sequence[tuple[Recorded, list[float] | None]]) -> Iterator[str]:
    """Yield what each threshold of blocks comes to over whole clips: the default's choice."""
    rows = []
    for threshold in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0):
        results, n_found, n_known = [], 0, 0
        for recorded, changes_s in recordings:
            replay = _replay(recorded, GateSetting("blocks", threshold))
            results.append(judged(replay, _replay(recorded, None), LATE_S))
            if changes_s is not None:
                n_found += int(_found(recorded, replay, changes_s))
                n_known += len(_within(recorded, changes_s))
        asked = statistics.mean(result.frames_asked / result.frames for result in results)
        agreement = statistics.mean(result.agreement for result in results)
        missed, events = (sum(getattr(result, name) for result in results) for name in ("events_missed", "events"))
        largest_s = max(result.largest_delay_s for result in results)
        figures = [f"{100 * asked:.1f}", f"{100 * agreement:.1f}", f"{missed} of {events}", f"{largest_s:.2f}"]
        rows.append([f"blocks:{threshold:g}", *figures, f"{n_found} of {n_known}"])
    yield f"**Thresholds of blocks, {len(recordings)} whole clips**\n"
    yield from table(("gate", *HEADINGS[1:4], *HEADINGS[5:]), rows)


if __name__ == "__main__":
    main()
