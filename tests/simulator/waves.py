"""Powers as functions of the seconds since the beginning: `power=function("tests.simulator.waves:rising")`."""

from __future__ import annotations

import math


def rising(seconds: float) -> float:
    """2 W more each second, from 0."""
    return 2.0 * seconds


def swaying(seconds: float) -> float:
    """5.5 W, and 2.5 W more and less twice a second."""
    return 5.5 + 2.5 * math.sin(4 * math.pi * seconds)
