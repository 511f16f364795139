"""What answers a request that an exception ended: want of memory, which may be over later, or a defect of jetsel's."""

from __future__ import annotations

import logging

import cv2

from jetsel.errors import InternalError, JetselError, NoMemoryError
from jetsel.events import event

log = logging.getLogger("jetsel.daemon")

NO_MEMORY = -4  # cv::Error::StsNoMem, which OpenCV raises where malloc gives nothing


def out_of_memory(error: BaseException) -> NoMemoryError | None:
    """Return the error that answers a request which this exception ended for want of memory; None for any other."""
    if isinstance(error, MemoryError) or (isinstance(error, cv2.error) and error.code == NO_MEMORY):
        return NoMemoryError(
            "memory ran out while this photograph was worked on: send again later or a smaller one; or raise the "
            "daemon's memory limit, or lower server.queue_megapixels or server.workers"
        )
    return None


def unexpected(error: Exception, request_id: str | None) -> JetselError:
    """Log an exception that is none of ours, and return the error that answers the request; for an `except` block."""
    shortage = out_of_memory(error)
    if shortage is not None:
        log.error("%s", shortage, extra=event("no-memory", request_id=request_id, code=shortage.code))
        return shortage
    log.exception("a request failed for a defect of jetsel's", extra=event("request-failed", request_id=request_id))
    return InternalError(f"jetsel failed on this request: its log has the reason under id {request_id}")
