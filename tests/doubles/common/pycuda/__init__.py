"""A stand-in for pycuda 2022.1 over the simulated GPU, as far as an engine host needs it."""

from trt_double.board import fault as _fault

VERSION = (2022, 1)
VERSION_STATUS = ""
VERSION_TEXT = "2022.1"

_refused = _fault("import_pycuda")
if _refused:
    raise ImportError(_refused)
