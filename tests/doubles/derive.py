"""Write the list of TensorRT 8.2's names: `python -m tests.doubles.derive`.

There is no wheel of 8.2 on the package index. Its list is that of 8.5.3.1 without what came between: what the release
notes and the source of the bindings (NVIDIA/TensorRT, python/src/infer/pyCore.cpp, the branches 8.2 and 8.5) differ in.
Where it is not certain that 8.2 has a name, the list leaves it out, so that nothing relies on it.
"""

from __future__ import annotations

import json
from typing import Any

from tests.doubles.extract import SYMBOLS, write

COMMAND = "python -m tests.doubles.derive"
SOURCE = "8.5.3.1"

# Class -> the names that came after 8.2; None where the whole class did.
LATER: dict[str, tuple[str, ...] | None] = {
    "Builder": ("max_threads",),
    "BuilderFlag": (
        "DIRECT_IO",
        "ENABLE_TACTIC_HEURISTIC",
        "OBEY_PRECISION_CONSTRAINTS",
        "PREFER_PRECISION_CONSTRAINTS",
        "REJECT_EMPTY_ALGORITHMS",
    ),
    "DataType": ("UINT8",),
    "IBuilderConfig": (
        "get_memory_pool_limit",
        "get_preview_feature",
        "set_memory_pool_limit",
        "set_preview_feature",
    ),
    "ICudaEngine": (
        "get_tensor_bytes_per_component",
        "get_tensor_components_per_element",
        "get_tensor_dtype",
        "get_tensor_format",
        "get_tensor_format_desc",
        "get_tensor_location",
        "get_tensor_mode",
        "get_tensor_name",
        "get_tensor_profile_shape",
        "get_tensor_shape",
        "get_tensor_vectorized_dim",
        "is_shape_inference_io",
        "num_io_tensors",
    ),
    "IExecutionContext": (
        "execute_async_v3",
        "get_input_consumed_event",
        "get_max_output_size",
        "get_output_allocator",
        "get_tensor_address",
        "get_tensor_shape",
        "get_tensor_strides",
        "infer_shapes",
        "nvtx_verbosity",
        "persistent_cache_limit",
        "set_input_consumed_event",
        "set_input_shape",
        "set_output_allocator",
        "set_tensor_address",
        "temporary_allocator",
    ),
    "IGridSampleLayer": None,
    "INMSLayer": None,
    "INetworkDefinition": ("add_grid_sample", "add_nms", "add_non_zero", "add_one_hot"),
    "INonZeroLayer": None,
    "IOneHotLayer": None,
    "IOutputAllocator": None,
    "ITensor": ("get_dimension_name", "set_dimension_name"),
    "MemoryPoolType": None,
    "PreviewFeature": None,
    "Runtime": ("max_threads",),
    "TacticSource": ("EDGE_MASK_CONVOLUTIONS", "JIT_CONVOLUTIONS"),
    "TensorIOMode": None,
}


def derived() -> dict[str, Any]:
    """Return the list of 8.2, as `extract` returns one."""
    listed: dict[str, Any] = json.loads((SYMBOLS / f"{SOURCE}.json").read_text())
    gone = {name for name, names in LATER.items() if names is None}
    classes = {
        name: [attribute for attribute in names if attribute not in (LATER.get(name) or ())]
        for name, names in listed["classes"].items()
        if name not in gone
    }
    module = [name for name in listed["module"] if name not in gone | {"uint8"}]
    return {
        "version": "8.2",
        "made_by": f"{COMMAND}: no wheel; {SOURCE} without LATER",
        "module": module,
        "classes": classes,
    }


def main() -> None:
    """Write the list."""
    write(derived(), SYMBOLS / "8.2.json")


if __name__ == "__main__":
    main()
