"""The simulated GPU: memory of its own address space, one context stack, streams that run late.

What is queued on a stream runs when someone waits for it, not before: a caller who forgets to synchronise reads what
was there. Memory that was never written is full of 0xCD. A CUDA error stays: every later call fails with it.
"""

from collections import deque

import numpy as np

from trt_double.board import board

FIRST_ADDRESS = 0xD00000000000  # above all that a process can map (47 bits), so that no host pointer is one of these
ALIGNMENT_BYTES = 256
UNWRITTEN = 0xCD


class CudaError(Exception):
    """A CUDA call failed: `text` is the driver's words."""

    def __init__(self, text):
        super().__init__(text)
        self.text = text


class Device:
    """The one GPU of the process."""

    def __init__(self):
        self.broken = None  # the text of the error that every later call repeats
        self.streams = {}
        self._blocks = {}  # first address -> uint8 array
        self._next_address = FIRST_ADDRESS
        self._next_handle = 0x5000
        self.stack = []  # the contexts that are current

    def check(self):
        """Raise the error that broke the GPU, if one did."""
        if self.broken:
            raise CudaError(self.broken)

    def check_context(self):
        """Raise unless this thread has the context and the GPU works."""
        self.check()
        if not self.stack:
            raise CudaError("invalid device context")

    @property
    def used_bytes(self):
        """What is allocated, and what others hold."""
        return sum(block.nbytes for block in self._blocks.values()) + (board("used_bytes") or 0)

    def allocate(self, size_bytes):
        """Return the address of new memory; raise CudaError where there is not enough."""
        self.check()
        if self.used_bytes + size_bytes > board("total_bytes"):
            raise CudaError("out of memory")
        block = np.empty(size_bytes, np.uint8)
        block.fill(UNWRITTEN)  # touched, so that the process grows by as much
        address = self._next_address
        self._next_address += -(-block.nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES + ALIGNMENT_BYTES
        self._blocks[address] = block
        return address

    def free(self, address):
        """Give memory back, after all that is queued has run, as cuMemFree does."""
        self.drain()
        if self._blocks.pop(address, None) is None:
            raise CudaError("invalid argument")

    def forget(self, address):
        """Give memory back without waiting: for what a collected object still held."""
        self._blocks.pop(address, None)

    def memory(self, address, size_bytes):
        """Return a writable view of device memory; raise CudaError unless all of it is allocated."""
        for first, block in self._blocks.items():
            if first <= address and address + size_bytes <= first + block.nbytes:
                return block[address - first : address - first + size_bytes]
        raise CudaError("invalid argument")

    def stream(self):
        """Return a new stream."""
        self._next_handle += 16
        stream = self.streams[self._next_handle] = Stream(self, self._next_handle)
        return stream

    def drain(self):
        """Run all that is queued on any stream."""
        for stream in list(self.streams.values()):
            stream.drain()


class Stream:
    """Work in order; each item is called with the stream, and may raise CudaError, which breaks the GPU."""

    def __init__(self, gpu, handle):
        self.gpu = gpu
        self.handle = handle
        self._queue = deque()

    def put(self, work):
        """Queue one item."""
        self._queue.append(work)

    def drain(self):
        """Wait for what is queued."""
        while self._queue:
            self.gpu.check()
            work = self._queue.popleft()
            try:
                work(self)
            except CudaError as error:
                self.gpu.broken = error.text
        self.gpu.check()


GPU = Device()
GPU.streams[0] = Stream(GPU, 0)
