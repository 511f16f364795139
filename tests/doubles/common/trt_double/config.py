"""How a network is to be built: flags, memory, profiles, and the timing cache."""

import json

from trt_double.board import board
from trt_double.bound import Bound
from trt_double.values import ENUMERATIONS, IHostMemory, Severity

CACHE_MAGIC = b"ftrtCACHE"
FLAG_VALUES = {member.name: int(member) for _, member in ENUMERATIONS["BuilderFlag"]._members()}


class IOptimizationProfile(Bound):
    """The smallest, best and largest shape of each dynamic input."""

    def __init__(self):
        self._shapes = {}

    def set_shape(self, input, min, opt, max):  # noqa: A002 - TensorRT's names
        shapes = [tuple(shape) for shape in (min, opt, max)]
        ordered = all(low <= middle <= high for low, middle, high in zip(*shapes))  # noqa: B905 - Python 3.6
        if len(set(map(len, shapes))) != 1 or not ordered:
            raise RuntimeError("Shape provided for min is inconsistent with other shapes.")
        self._shapes[input] = shapes


class ITimingCache(Bound):
    """What was timed, behind a header that says on which device."""

    def __init__(self, header, entries):
        self._header = header
        self._entries = entries

    def serialize(self):
        text = json.dumps({"header": self._header, "entries": self._entries}, sort_keys=True)
        return IHostMemory(CACHE_MAGIC + text.encode())


class IBuilderConfig(Bound):
    """The configuration of one build."""

    def __init__(self, logger, header):
        self._flags = 0
        self._logger = logger
        self._header = header  # of timing caches made here
        self._workspace_bytes = board("total_bytes")
        self._profiles = []
        self._cache = None
        self._tactics = 0b11111

    def _has(self, flag):
        return bool(self._flags >> FLAG_VALUES[flag] & 1)

    def set_flag(self, flag):
        self._flags |= 1 << int(flag)

    def _set_workspace(self, size_bytes):
        self._workspace_bytes = size_bytes

    max_workspace_size = property(None, _set_workspace)

    def set_memory_pool_limit(self, pool, pool_size):
        assert pool.name == "WORKSPACE"
        self._workspace_bytes = pool_size

    def add_optimization_profile(self, profile):
        self._profiles.append(profile)
        return len(self._profiles) - 1

    def set_tactic_sources(self, tactic_sources):
        self._tactics = tactic_sources
        return True

    def get_tactic_sources(self):
        return self._tactics

    def create_timing_cache(self, serialized_timing_cache):
        """Return a cache of these bytes, an empty one for none; None for bytes that are no cache."""
        content = bytes(serialized_timing_cache)
        if not content:
            return ITimingCache(dict(self._header), {})
        if not content.startswith(CACHE_MAGIC):
            self._logger.log(Severity.ERROR, "Cannot read the timing cache: it is damaged or of another version")
            return None
        found = json.loads(content[len(CACHE_MAGIC) :].decode())
        return ITimingCache(found["header"], found["entries"])

    def set_timing_cache(self, cache, ignore_mismatch):
        """Use a cache; refuse one of another device unless told to."""
        if cache._header != self._header and not ignore_mismatch:
            self._logger.log(Severity.ERROR, "The timing cache was made on a device of other CUDA properties")
            return False
        self._cache = cache
        return True

    def get_timing_cache(self):
        return self._cache
