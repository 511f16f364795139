"""A caller of TensorRT for the tests of the doubles, in the interpreter that has them: it asks for what is there."""

import json
import sys
from pathlib import Path

import numpy as np
import pycuda.driver as cuda
import tensorrt as trt

cuda.init()
context = cuda.Device(0).make_context()
lines = []  # what TensorRT logged: warnings and errors
details = []  # and the rest


class Log(trt.ILogger):
    def __init__(self):
        trt.ILogger.__init__(self)

    def log(self, severity, msg):
        (lines if int(severity) <= int(trt.ILogger.WARNING) else details).append(msg)


LOG = Log()


def parsed(builder, path, flags=None):
    """Return (network, parser, whether it was parsed)."""
    kinds = trt.NetworkDefinitionCreationFlag
    if flags is None:
        flags = 1 << int(kinds.EXPLICIT_BATCH) if hasattr(kinds, "EXPLICIT_BATCH") else 0
    network = builder.create_network(flags)
    parser = trt.OnnxParser(network, LOG)
    return network, parser, parser.parse(Path(path).read_bytes())


def build(path, most=4, prepare=None, flags=None):
    """Return the plan of an ONNX file with a profile of 1 to `most` images; None where TensorRT builds none."""
    builder = trt.Builder(LOG)
    network, _, _ = parsed(builder, path, flags)
    config = builder.create_builder_config()
    given = network.get_input(0)
    if most:
        rest = tuple(given.shape)[1:]
        profile = builder.create_optimization_profile()
        profile.set_shape(given.name, (1, *rest), (2, *rest), (most, *rest))
        config.add_optimization_profile(profile)
    if prepare is not None:
        prepare(config)
    plan = builder.build_serialized_network(network, config)
    return None if plan is None else bytes(plan)


def load(plan):
    """Return the engine, None where TensorRT refuses the plan."""
    return trt.Runtime(LOG).deserialize_cuda_engine(plan)


def names(engine):
    if hasattr(engine, "num_io_tensors"):
        return [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
    return [engine.get_binding_name(index) for index in range(engine.num_bindings)]


def shaped(execution, engine, shape):
    """Set the input's shape; return whether TensorRT takes it."""
    if hasattr(engine, "num_io_tensors"):
        return execution.set_input_shape(names(engine)[0], shape)
    return execution.set_binding_shape(0, shape)


def enqueue(execution, engine, addresses, stream):
    if hasattr(engine, "num_io_tensors"):
        for name, address in zip(names(engine), addresses):  # noqa: B905 - Python 3.6
            execution.set_tensor_address(name, address)
        return execution.execute_async_v3(stream.handle)
    return execution.execute_async_v2(addresses, stream.handle)


def output_shapes(execution, engine):
    if hasattr(engine, "num_io_tensors"):
        return [tuple(execution.get_tensor_shape(name)) for name in names(engine)[1:]]
    return [tuple(execution.get_binding_shape(index)) for index in range(1, engine.num_bindings)]


def run(engine, batch, execution=None):
    """Return the outputs of one run, as float32."""
    execution = execution or engine.create_execution_context()
    stream = cuda.Stream()
    assert shaped(execution, engine, batch.shape), lines
    answers = [np.zeros(shape, np.float32) for shape in output_shapes(execution, engine)]
    memory = [cuda.mem_alloc(array.nbytes) for array in [batch, *answers]]
    cuda.memcpy_htod_async(memory[0], batch, stream)
    assert enqueue(execution, engine, [int(block) for block in memory], stream), lines
    for answer, block in zip(answers, memory[1:]):  # noqa: B905 - Python 3.6
        cuda.memcpy_dtoh_async(answer, block, stream)
    stream.synchronize()
    return answers


def say(value):
    """Print the one line that the test reads, and leave the CUDA context as a tidy caller does."""
    sys.stdout.write(json.dumps(value) + "\n")
    context.pop()
    context.detach()
