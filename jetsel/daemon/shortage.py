"""Whether an exception means that memory ran out: then that request failed alone, and may succeed later."""

from __future__ import annotations

import cv2

from jetsel.errors import NoMemoryError

NO_MEMORY = -4  # cv::Error::StsNoMem, which OpenCV raises where malloc gives nothing


def out_of_memory(error: BaseException) -> NoMemoryError | None:
    """Return the error that answers a request which this exception ended for want of memory; None for any other."""
    if isinstance(error, MemoryError) or (isinstance(error, cv2.error) and error.code == NO_MEMORY):
        return NoMemoryError(
            "memory ran out while this photograph was worked on: send again later or a smaller one; or raise the "
            "daemon's memory limit, or lower server.queue_megapixels or server.workers"
        )
    return None
