"""The policies: which models run for a photograph, and which answer is taken."""

from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run
from jetsel.policies.registry import catalogue

__all__ = ["Decision", "Evidence", "Policy", "Prediction", "Run", "catalogue"]
