"""How classes bound from C++ behave in Python: no attribute can be added."""


class Bound:
    """A class of the double. `offer` removes what a version lacks from it, and sets `_offered`."""

    def __setattr__(self, name, value):
        cls = type(self)
        if "_offered" in vars(cls) and not name.startswith("_") and not isinstance(getattr(cls, name, None), property):
            raise AttributeError(f"'tensorrt.tensorrt.{cls.__name__}' object has no attribute '{name}'")
        object.__setattr__(self, name, value)
