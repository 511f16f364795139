"""How classes bound from C++ behave in Python: no attribute can be added, and a subclass must call __init__."""


class Bound:
    """A class of the double. `offer` removes what a version lacks from it, and sets `_offered`."""

    def __setattr__(self, name, value):
        cls = type(self)
        if "_offered" in vars(cls) and not name.startswith("_") and not isinstance(getattr(cls, name, None), property):
            raise AttributeError(f"'tensorrt.tensorrt.{cls.__name__}' object has no attribute '{name}'")
        object.__setattr__(self, name, value)


class Overridable(type):
    """The type of classes that a caller may subclass; as pybind11, it refuses an __init__ that never calls theirs."""

    def __call__(cls, *args, **kwargs):
        made = super().__call__(*args, **kwargs)
        if not getattr(made, "_initialized", False):
            bound = next(base for base in cls.__mro__ if "_offered" in vars(base))
            raise TypeError(f"tensorrt.tensorrt.{bound.__name__}.__init__() must be called when overriding __init__")
        return made
