"""What `import pycuda.driver` gives: the double's public names, and no others."""

from pycuda._driver import (  # noqa: F401
    Context,
    Device,
    Error,
    LaunchError,
    LogicError,
    MemoryError,  # noqa: A004 - pycuda's name
    RuntimeError,  # noqa: A004 - pycuda's name
    ctx_flags,
    device_attribute,
    get_driver_version,
    get_version,
    init,
)
from pycuda._memory import (  # noqa: F401
    DeviceAllocation,
    HostAllocation,
    HostPointer,
    PagelockedHostAllocation,
    RegisteredHostMemory,
    host_alloc_flags,
    mem_alloc,
    mem_get_info,
    mem_host_register_flags,
    memcpy_dtod_async,
    memcpy_dtoh,
    memcpy_dtoh_async,
    memcpy_htod,
    memcpy_htod_async,
    memset_d8,
    memset_d8_async,
    pagelocked_empty,
    register_host_memory,
)
from pycuda._stream import Event, Stream, event_flags  # noqa: F401
