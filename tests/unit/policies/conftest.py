"""A small calibration that the tests of the artefact share, in memory and saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jetsel.policies import cascade, chain
from jetsel.policies.calibration import Calibration
from jetsel.policies.cascade import Rung
from jetsel.policies.catalogue import CRITERIA
from jetsel.policies.coding import save
from jetsel.policies.kind import Part


@pytest.fixture
def calibration() -> Calibration:
    """Four photographs, two features, three models, k = 3."""
    return Calibration(
        family="animals",
        labels_sha256="a" * 64,
        model_sha256={"small": "1" * 64, "middle": "2" * 64, "large": "3" * 64},
        feature_table="f" * 64,
        decode_px=64,
        features=("contrast", "hue1"),
        k=3,
        temperatures={"small": 1.5, "middle": 1.25, "large": 1.0},
        costs_ms={"small": 0.5, "middle": 1.0, "large": 4.0},
        minimum=np.array([2.0, -1.0], np.float32),
        maximum=np.array([12.0, 1.0], np.float32),
        points=np.array([[0, 0], [0.1, 0], [0.2, 0], [1, 1]], np.float32),
        right={
            "top1": np.array([[1, 0, 1], [1, 1, 1], [0, 1, 0], [0, 0, 0]], bool),
            "top5": np.array([[1, 1, 1], [1, 1, 1], [0, 1, 1], [0, 0, 1]], bool),
        },
        parts={
            "chain": Part(chain.Facts(dict.fromkeys(CRITERIA, ("small", "middle", "large")))),
            "cascade": Part(
                cascade.Facts({"top1": (Rung("small", 0.75), Rung("large", 0.0)), "top5": (Rung("middle", 0.0),)})
            ),
        },
        default_policy={"top1": "cascade", "top5": "single:middle"},
        because="cascade: 75.0 % in 1.2 ms; large alone: 50.0 % in 4.0 ms",
        figures={"top1": {"cascade": {"top1": 0.75, "time_ms": 1.2, "energy_mj": None}}},
        created="2026-11-20",
    )


@pytest.fixture
def saved(calibration: Calibration, tmp_path: Path) -> Path:
    """The directory that holds the calibration, alone in its parent."""
    save(calibration, tmp_path / "animals")
    return tmp_path / "animals"
