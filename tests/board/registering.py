"""Say whether the GPU reads the shared memory itself. The board's Python runs this: registering.py HOST FD BYTES."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(sys.argv[1]).parent))
from host.memory import Shared
from host.tensorrt_runtime import TensorRTRuntime

del sys.path[0]
runtime = TensorRTRuntime()
shared = Shared(int(sys.argv[2]), int(sys.argv[3]))
runtime.mapped(shared)
first = shared.view(0, (1, 1))
print(json.dumps({"in_place": runtime._gpu.source(first, "float32") is first}))
del first
runtime.close()
