"""What deadlines and an edge server will give: accuracy and on-time share, by answering a recording's images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibration.papers.mdinference import networks as kinds
from calibration.papers.mdinference.device import SimulatedDevice, World
from calibration.papers.mdinference.drawn import drawn
from jetsel.artefact.calibration import Calibration
from jetsel.base.config import Config
from jetsel.base.errors import CalibrationError, ConfigError
from jetsel.calibrate.record.load import load
from jetsel.image import Limits, measure, read_file
from jetsel.policies import catalogue
from jetsel.policies.deadline import EDGE, REDUCED, Deadline
from jetsel.policies.front import points_here
from jetsel.policies.with_edge import deadline_policy
from jetsel.zoo import Family


@dataclass(frozen=True)
class Predicted:
    """Shares of the requests: right, in time, right and in time, answered by the edge; and the mean time."""

    accuracy: float
    on_time: float
    effective: float
    from_edge: float
    mean_ms: float


def predict(policy: Deadline, world: World, deadline_ms: float, seed: int) -> Predicted:
    """Answer every image of the recording in a random order, one request after the other."""
    chance = np.random.default_rng(seed)
    images = chance.permutation(len(world.recording.classes))
    accuracy = {point.policy.name: point.known_accuracy for point in policy.edge.points}
    device = SimulatedDevice(world, chance)
    rows = np.zeros((len(images), 3))
    for place, image in enumerate(map(int, images)):
        seen, took_ms = device.answer(policy, image, deadline_ms)
        if seen is None:
            rows[place] = False, False, took_ms
            continue
        is_right, whole = seen.label == world.recording.classes[image], seen.model.partition(REDUCED)[0]
        if REDUCED in seen.model:  # as much as that is less accurate, right answers turn wrong
            is_right &= chance.random() < accuracy[seen.model] / accuracy[whole]
        rows[place] = is_right, seen.model.startswith(EDGE), took_ms
    right, from_edge, took_ms = rows.T
    on_time = took_ms <= deadline_ms
    shares = (right.mean(), on_time.mean(), (right * on_time).mean(), from_edge.mean(), took_ms.mean())
    return Predicted(*(float(share) for share in shares))


def predictions(
    recording: Path,
    family: Family,
    here: Sequence[str],
    calibration: Calibration,
    config: Config,
    limits: Limits,
    networks: Sequence[str],
    deadlines_ms: Sequence[float],
    policies: Sequence[str],
    around_ms: float,
    edge_factor: float,
    seed: int,
) -> list[dict[str, Any]]:
    """Return a row for each network, deadline and policy: with the device alone, and with the configured edge server.

    here: names of the models on the device, cheapest first. networks: see networks.read. around_ms,
    edge_factor: see World. Raises ConfigError and CalibrationError.
    """
    found = load(recording, family).recording
    if unknown := sorted(set(config.edge.models) - set(found.models)):
        raise ConfigError(f"edge.models.{unknown[0]}: {recording} has no model of that name")
    sizes, sides_px = _sizes(found.paths, limits)
    policies_here = catalogue(list(here), calibration)
    offered = {name: policy for name, policy in policies_here.items() if not policy.features}  # none are recorded here
    points = points_here(offered, calibration, here)
    rows = []
    for text in networks:
        known = (kinds.read(text), sizes, sides_px, around_ms, edge_factor)
        for deadline_ms in deadlines_ms:
            for way, elsewhere in _ways(config).items():
                timed = deadline_policy(offered, calibration, here, elsewhere, config.edge)
                if timed is None:
                    raise CalibrationError(
                        f"the calibration of {family.name} does not contain the accuracy of its models; calibrate again"
                    )
                edge = config if elsewhere else None
                world = World(found, family, here, calibration.temperatures, edge, *known)
                for policy in (timed, drawn(timed, points, np.random.default_rng(seed))):
                    if policy.name in policies:
                        row = {"network": text, "deadline_ms": deadline_ms, "policy": policy.name, "models": way}
                        rows.append(row | asdict(predict(policy, world, deadline_ms, seed)))
    return rows


def _ways(config: Config) -> Mapping[str, list[str]]:
    """Return the names of the edge server's models for each way to answer."""
    sides_px = {EDGE + name: ["", *model.accuracy_at_px] for name, model in config.edge.models.items()}
    elsewhere = [name + (REDUCED + px if px else "") for name, sides in sides_px.items() for px in sides]
    return {"device alone": [], **({"with the edge server": elsewhere} if elsewhere else {})}


def _sizes(paths: Sequence[str], limits: Limits) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the bytes, and the width and height, of the recorded images."""
    sizes, sides_px = [], []
    for path in paths:
        try:
            data = read_file(Path(path), limits)
        except OSError as error:
            raise CalibrationError(
                f"{path}: {error.strerror}: the sizes of the recorded images are needed; put the image back"
            ) from None
        header = measure(memoryview(data), None, limits, 1).header
        assert header is not None, "raw pixels are not recorded"
        sizes.append(len(data))
        sides_px.append((header.width, header.height))
    return sizes, sides_px
