"""How the daemon fares, as `status` tells it."""

from __future__ import annotations

import os
import time

from jetsel import __version__
from jetsel.daemon.admission import Admission
from jetsel.daemon.generation import Generation
from jetsel.daemon.memory import resident_mb
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.metering.telling import power_status
from jetsel.daemon.port import Port
from jetsel.daemon.tally import Tally
from jetsel.wire import PROTOCOL_VERSION, StatusReply


def status(
    request_id: str,
    state: str,
    generation: Generation,
    tally: Tally,
    admission: Admission,
    port: Port,
    metering: Metering,
) -> StatusReply:
    """Put together what each part of the daemon knows. state: loading, ready or stopping."""
    return StatusReply(
        v=PROTOCOL_VERSION,
        id=request_id,
        state=state,
        version=__version__,
        pid=os.getpid(),
        uptime_s=round(time.monotonic() - tally.started_s, 3),
        endpoints=port.endpoints,
        default_family=generation.default_family,
        families=[family.status() for family in generation.families.values()],
        broken=generation.broken,
        requests=tally.outcomes(),
        in_queue=admission.in_queue,
        queued_bytes=admission.queued_bytes,
        lost_replies=port.lost_replies,
        resident_mb=resident_mb(),
        progress=generation.progress,
        power=power_status(metering),
    )
