"""A calibration's parts of every policy, for four photographs and three models: small, middle, large."""

import numpy as np

from jetsel.artefact.calibration import (
    Calibration,
    CalibrationImages,
    CascadeFacts,
    ChainFacts,
    MultiplexerFacts,
    PolicyPart,
    Rung,
)
from jetsel.policies.multiplexer import fit_readout, network_inputs

TWO = {
    "minimum": np.array([2.0, -1.0], np.float32),
    "maximum": np.array([12.0, 1.0], np.float32),
    "points": np.array([[0, 0], [0.1, 0], [0.2, 0], [1, 1]], np.float32),
    "right": np.array([[1, 1, 1], [1, 1, 1], [0, 1, 1], [0, 0, 1]], bool),
    "goes_on": np.array([[0, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]], bool),
}
PATHS = (Rung("small", 0.0),), (Rung("middle", 0.0),), (Rung("small", 0.75), Rung("large", 0.0))


def multiplexer(models: int, width: int = 0) -> PolicyPart:
    """A multiplexer of this many models that was fitted on eight random answers.

    width: of the embeddings, 0 for none.
    """
    draw = np.random.default_rng(1)
    inputs = network_inputs(np.full((8, 2), 0.5, np.float32), np.zeros((8, width), np.float32))
    readout, _ = fit_readout(inputs, draw.random((8, models)) < 0.5)
    return PolicyPart(MultiplexerFacts(0.125), readout.weights)


PARTS = {
    "chain": PolicyPart(ChainFacts(PATHS, ("contrast", "hue1"), 3, 0.25, (0.5,)), TWO),
    "cascade": PolicyPart(
        CascadeFacts(
            (Rung("small", 0.25), Rung("large", 0.0)),
            ((Rung("small", 0.5), Rung("large", 0.0)), (Rung("small", 0.0),)),
        )
    ),
    "multiplexer": multiplexer(3),
}


def animals() -> Calibration:
    """Four images, two features, three models, k = 3."""
    return Calibration(
        family="animals",
        labels_sha256="a" * 64,
        identities={"small": "1" * 64, "middle": "2" * 64, "large": "3" * 64},
        feature_table="f" * 64,
        decode_px=64,
        features_px=4096,
        images=CalibrationImages(count=4),
        temperatures={"small": 1.5, "middle": 1.25, "large": 1.0},
        costs_ms={"small": 0.5, "middle": 1.0, "large": 4.0},
        parts={
            "chain": PolicyPart(ChainFacts(PATHS, ("contrast", "hue1"), 3, 0.25), TWO),
            "cascade": PolicyPart(CascadeFacts((Rung("small", 0.75), Rung("large", 0.0)), ())),
        },
        default_policy="cascade",
        because="cascade: 75.0 % in 1.2 ms; large alone: 50.0 % in 4.0 ms",
        figures={"cascade": {"top1": 0.75, "time_ms": 1.2, "energy_mj": None}},
        created="2026-11-20",
    )
