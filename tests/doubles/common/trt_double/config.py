"""How a network is to be built: flags, memory, profiles, the timing cache, and calibrators."""

import json

from trt_double.board import board
from trt_double.bound import Bound, Overridable
from trt_double.values import ENUMERATIONS, IHostMemory, Severity

CACHE_MAGIC = b"ftrtCACHE"
FLAG_VALUES = {member.name: int(member) for _, member in ENUMERATIONS["BuilderFlag"]._members()}
WORKSPACE = int(ENUMERATIONS["MemoryPoolType"].WORKSPACE)


class IOptimizationProfile(Bound):
    """The smallest, best and largest shape of each dynamic input."""

    def __init__(self):
        self._shapes = {}

    def __bool__(self):
        return True

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


class IInt8Calibrator(Bound, metaclass=Overridable):
    """Hands the builder the batches that it calibrates with; a subclass overrides the methods."""

    def __init__(self):
        self._initialized = True

    def get_batch_size(self):
        raise RuntimeError('Tried to call pure virtual function "IInt8Calibrator::getBatchSize"')

    def get_batch(self, names):
        raise RuntimeError('Tried to call pure virtual function "IInt8Calibrator::getBatch"')

    def read_calibration_cache(self):
        raise RuntimeError('Tried to call pure virtual function "IInt8Calibrator::readCalibrationCache"')

    def write_calibration_cache(self, cache):
        raise RuntimeError('Tried to call pure virtual function "IInt8Calibrator::writeCalibrationCache"')


class IInt8EntropyCalibrator2(IInt8Calibrator):
    """The calibrator by entropy."""


def _plain(name, initial):
    """Return a property that keeps what it is given, and starts as `initial`."""
    return property(
        lambda self: self._values.get(name, initial), lambda self, value: self._values.__setitem__(name, value)
    )


class IBuilderConfig(Bound):
    """The configuration of one build."""

    int8_calibrator = _plain("int8_calibrator", None)
    flags = _plain("flags", 0)

    def __init__(self, logger, header):
        self._values = {}
        self._logger = logger
        self._header = header  # of timing caches made here
        self._pools = {}
        self._profiles = []
        self._cache = None
        self._tactics = 0b11111

    def _has(self, flag):
        return bool(self._flags() >> FLAG_VALUES[flag] & 1)

    def _flags(self):
        return self._values.get("flags", 0)

    def set_flag(self, flag):
        self._values["flags"] = self._flags() | 1 << int(flag)

    @property
    def max_workspace_size(self):
        return self._pools.get(WORKSPACE, 0)

    @max_workspace_size.setter
    def max_workspace_size(self, size_bytes):
        self._pools[WORKSPACE] = size_bytes

    def set_memory_pool_limit(self, pool, pool_size):
        if int(pool) == WORKSPACE and pool_size > board("total_bytes"):
            self._logger.log(Severity.ERROR, "Memory pool limit exceeds the device memory")
            return
        self._pools[int(pool)] = pool_size

    def add_optimization_profile(self, profile):
        self._profiles.append(profile)
        return len(self._profiles) - 1

    def set_tactic_sources(self, tactic_sources):
        self._tactics = tactic_sources
        return True

    def get_tactic_sources(self):
        return self._tactics

    def create_timing_cache(self, serialized_timing_cache):
        """Return a cache of these bytes, an empty one for none; None for bytes that are no cache of this version."""
        content = bytes(serialized_timing_cache)
        if not content:
            return ITimingCache(dict(self._header), {})
        try:
            found = json.loads(content[len(CACHE_MAGIC) :].decode()) if content.startswith(CACHE_MAGIC) else None
        except ValueError:
            found = None
        if found is None or found["header"]["tensorrt"] != self._header["tensorrt"]:
            self._logger.log(Severity.ERROR, "Cannot read the timing cache: it is damaged or of another version")
            return None
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
