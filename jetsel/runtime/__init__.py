"""The driver that runs every policy, with its queues, batches and timers."""

from jetsel.runtime.driver import Driver
from jetsel.runtime.model_queue import Batch, ModelQueue
from jetsel.runtime.request_run import RequestRun
from jetsel.runtime.shared_runs import Timers

__all__ = ["Batch", "Driver", "ModelQueue", "RequestRun", "Timers"]
