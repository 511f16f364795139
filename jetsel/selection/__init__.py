"""Which models run: the policies, and the one driver that runs them."""

from jetsel.selection.catalogue import catalogue
from jetsel.selection.driver import Batch, Driver
from jetsel.selection.flight import Flight
from jetsel.selection.lane import Lane
from jetsel.selection.observer import Ended, Observer
from jetsel.selection.policy import Decision, Evidence, Policy, Prediction, Run

__all__ = [
    "Batch",
    "Decision",
    "Driver",
    "Ended",
    "Evidence",
    "Flight",
    "Lane",
    "Observer",
    "Policy",
    "Prediction",
    "Run",
    "catalogue",
]
