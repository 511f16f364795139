"""What `import pycuda.driver` gives: the double's public names, and no others."""

from pycuda._driver import (  # noqa: F401
    Context,
    Device,
    Error,
    LaunchError,
    LogicError,
    MemoryError,  # noqa: A004 - pycuda's name
    RuntimeError,  # noqa: A004 - pycuda's name
    device_attribute,
    get_version,
    init,
)
from pycuda._memory import (  # noqa: F401
    mem_alloc,
    mem_get_info,
    memcpy_dtoh_async,
    memcpy_htod,
    memcpy_htod_async,
    pagelocked_empty,
)
from pycuda._stream import (  # noqa: F401
    Event,
    Stream,
)
