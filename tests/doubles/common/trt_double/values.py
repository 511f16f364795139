"""TensorRT's small types: enumerations, dimensions, data types, loggers and memory that the caller may read."""

import numpy as np


class Enumeration:
    """A member of an enumeration as pybind11 makes them: neither an int nor an enum.Enum."""

    def __init__(self, value):
        self._value = value

    @property
    def name(self):
        return next(name for name, member in self._members() if member._value == self._value)

    @classmethod
    def _members(cls):
        return [(name, member) for name, member in vars(cls).items() if isinstance(member, Enumeration)]

    def __int__(self):
        return self._value

    def __eq__(self, other):
        return isinstance(other, Enumeration) and self._kind is other._kind and self._value == other._value

    __hash__ = None


# Enumerations, with those members that the engine host may name, in the order of their values. Which of them a version
# offers, its table says.
MEMBERS = {
    "BuilderFlag": "FP16 INT8",
    "DataType": "FLOAT HALF INT8 INT32",
    "ExecutionContextAllocationStrategy": "STATIC ON_PROFILE_CHANGE USER_MANAGED",
    "MemoryPoolType": "WORKSPACE",
    "NetworkDefinitionCreationFlag": "EXPLICIT_BATCH STRONGLY_TYPED",
    "TacticSource": "CUBLAS CUBLAS_LT CUDNN",
    "TensorIOMode": "NONE INPUT OUTPUT",
}
SEVERITIES = "INTERNAL_ERROR ERROR WARNING INFO VERBOSE"


def enumeration(name, members):
    """Return an enumeration's implementation: the class with all its members."""
    cls = type(name, (Enumeration,), {"__doc__": f"TensorRT's {name}."})
    cls._kind = cls
    for value, member in enumerate(members.split()):
        setattr(cls, member, cls(value))
    return cls


ENUMERATIONS = {name: enumeration(name, members) for name, members in MEMBERS.items()}
Severity = enumeration("Severity", SEVERITIES)
DataType = ENUMERATIONS["DataType"]
NUMPY_TYPES = {"FLOAT": np.float32, "HALF": np.float16, "INT8": np.int8, "INT32": np.int32}


def numpy_type(trt_type):
    """Return the numpy type of a DataType."""
    return NUMPY_TYPES[trt_type.name]


def data_type(numpy_type):
    """Return the DataType of a numpy type."""
    names = [name for name, found in NUMPY_TYPES.items() if np.dtype(found) == np.dtype(numpy_type)]
    return getattr(DataType, names[0])


class Dims:
    """Extents, -1 for one that is not known yet."""

    def __init__(self, extents=()):
        self._extents = tuple(int(extent) for extent in extents)

    def __len__(self):
        return len(self._extents)

    def __getitem__(self, index):
        return self._extents[index]


class ILogger:
    """What TensorRT reports to; a subclass overrides `log`."""

    def __init__(self):
        pass


class IHostMemory(bytearray):
    """Memory that TensorRT owns: a buffer of bytes, but no sequence to its user."""

    def __len__(self):
        raise TypeError("object of type 'tensorrt.tensorrt.IHostMemory' has no len()")


ILogger.Severity = Severity
for _name in SEVERITIES.split():
    setattr(ILogger, _name, getattr(Severity, _name))
