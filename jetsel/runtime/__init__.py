"""The one driver that runs every policy."""

from jetsel.runtime.driver import Batch, Driver
from jetsel.runtime.model_queue import ModelQueue
from jetsel.runtime.request_run import RequestRun

__all__ = ["Batch", "Driver", "ModelQueue", "RequestRun"]
