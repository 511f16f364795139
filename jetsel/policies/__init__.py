"""The policies: which models run for a photograph, and which answer is taken."""

from jetsel.policies.catalogue import catalogue
from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run

__all__ = ["Decision", "Evidence", "Policy", "Prediction", "Run", "catalogue"]
