"""Say whether the GPU reads the shared memory itself. The board's Python runs this: registering.py HOST FD BYTES."""

import importlib.util
import json
import sys

spec = importlib.util.spec_from_file_location("host", sys.argv[1])
host = importlib.util.module_from_spec(spec)
spec.loader.exec_module(host)
runtime = host.TensorRTRuntime()
shared = host.Shared(int(sys.argv[2]), int(sys.argv[3]))
runtime.mapped(shared)
gpu = runtime._gpu
first = shared.view(0, (1, 1))
print(json.dumps({"in_place": gpu.source(first, "float32") is first}))
del first
runtime.unmapping(shared)
runtime.close()
