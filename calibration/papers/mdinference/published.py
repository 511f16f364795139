"""What MDInference (Ogden and Guo) reports: its models, and the figures to compare with."""

from __future__ import annotations

import numpy as np

from calibration.papers.mdinference.stages import Models

TABLE_III = {
    "SqueezeNet": (49.0, 4.91, 0.06),
    "MobileNetV1 0.25": (49.7, 3.21, 0.08),
    "MobileNetV1 0.5": (63.2, 4.21, 0.06),
    "DenseNet": (64.2, 25.49, 0.14),
    "MobileNetV1 0.75": (68.3, 4.67, 0.07),
    "MobileNetV1 1.0": (71.0, 5.43, 0.11),
    "NasNet Mobile": (73.9, 21.18, 0.17),
    "InceptionResNetV2": (77.5, 50.85, 0.33),
    "InceptionV3": (77.9, 31.11, 0.19),
    "InceptionV4": (80.1, 59.21, 0.22),
    "NasNet Large": (82.6, 112.61, 0.36),
}
"""Table III: top-1 accuracy in %, mean and standard deviation of the time in ms on an AWS p2.xlarge."""

FICTIONAL = {"NasNet Fictional": (50.0, 112.61, 0.36)}
"""In Table III for section V-C alone."""

FASTEST = {"MobileNetV1 0.25, 128 px": (41.4, 3.21, 0.08)}
"""What Table IV's static latency answers with, wherever it runs: its accuracy is that of the model on the device."""

ON_DEVICE = 0.414
"""MobileNetV1 0.25 at 128 pixels (V-D): its accuracy in TensorFlow's list of hosted models, and Table IV's."""

_WIDTHS = {
    "MobileNetV1 0.25": (41.4, 45.4, 47.1, 49.7),
    "MobileNetV1 0.5": (56.2, 59.0, 61.7, 63.2),
    "MobileNetV1 0.75": (62.0, 65.2, 67.1, 68.3),
    "MobileNetV1 1.0": (65.2, 68.0, 69.9, 71.0),
}
"""TensorFlow Lite's hosted models, floating point: MobileNet v1 by width, at 128, 160, 192 and 224 pixels."""

RANDOM_POOL = {
    **{name: figures for name, figures in TABLE_III.items() if name not in _WIDTHS},
    **{
        f"{name}, {px} px": (accuracy, *TABLE_III[name][1:])
        for name, accuracies in _WIDTHS.items()
        for px, accuracy in zip((128, 160, 192, 224), accuracies, strict=True)
    },
}
"""What the paper's `random` row agrees with: the list's 16 MobileNets and seven of Table III. Sizes other than 224 have
the time of their width at 224, which Table III has."""

TABLE_IV = {
    "university": {
        "static-latency": (0.26, 41.40),
        "static-accuracy": (3.67, 81.09),
        "random": (0.42, 63.33),
        "mdinference": (0.26, 82.39),
    },
    "residential": {
        "static-latency": (3.16, 41.40),
        "static-accuracy": (23.03, 73.11),
        "random": (5.06, 62.06),
        "mdinference": (3.16, 80.43),
    },
}
"""By network and policy: on-device reliance and aggregate accuracy, in %, at 250 ms."""

LESS_LATENCY = {115.0: 42.0}
"""V-A, Figure 3a: by SLA in ms, how much less the mean latency is than static greedy's, in %."""


def models(table: dict[str, tuple[float, float, float]]) -> Models:
    """Return a table's models, accuracy as a share."""
    accuracy, mean_ms, deviation_ms = np.array(list(table.values())).T
    return Models(accuracy / 100, mean_ms, deviation_ms)
