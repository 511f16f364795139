"""The doubles run engines as TensorRT and pycuda do: late, on their own memory, in one context and one thread."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.doubles.interpreter import GENERATIONS

Ask = Callable[..., Any]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_an_engine_computes_what_its_onnx_file_says(generation: str, ask: Ask, expected: Any) -> None:
    said = ask(generation, "say([answer.tolist() for answer in run(load(build(MODEL)), BATCH)])")
    for answer, wanted in zip(said, expected, strict=True):
        np.testing.assert_allclose(answer, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_shape_outside_of_the_profile_is_refused_and_so_is_a_run_without_one(generation: str, ask: Ask) -> None:
    script = """
engine = load(build(MODEL))
execution = engine.create_execution_context()
count = len(names(engine))
blocks = [cuda.mem_alloc(4096) for _ in range(count)]
addresses = [int(block) for block in blocks]
stream = cuda.Stream()
early = enqueue(execution, engine, addresses, stream)
taken = [shaped(execution, engine, (batch,) + BATCH.shape[1:]) for batch in (0, 1, 4, 5)]
say([early, taken, enqueue(execution, engine, addresses, stream), len(lines)])
"""
    assert ask(generation, script) == [False, [False, True, True, False], True, 3]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_an_answer_is_not_there_before_the_stream_has_run(generation: str, ask: Ask) -> None:
    script = """
stream, block = cuda.Stream(), cuda.mem_alloc(4)
first, second = np.zeros(4, np.uint8), np.zeros(4, np.uint8)
cuda.memcpy_dtoh_async(first, block, stream)
cuda.memcpy_htod_async(block, np.arange(4, dtype=np.uint8), stream)
cuda.memcpy_dtoh_async(second, block, stream)
before = second.tolist()
stream.synchronize()
say([before, first.tolist(), second.tolist()])
"""
    assert ask(generation, script) == [[0] * 4, [0xCD] * 4, [0, 1, 2, 3]]


def test_the_address_of_host_memory_is_none_of_the_gpu(ask: Ask) -> None:
    script = """
host = np.zeros(64, np.float32)
try:
    cuda.memcpy_htod(host.ctypes.data, host)
except cuda.LogicError as error:
    say(str(error))
"""
    assert ask("8.2", script) == "cuMemcpyHtoD failed: invalid argument"


def test_an_illegal_address_breaks_the_gpu_for_good(ask: Ask) -> None:
    script = """
engine = load(build(MODEL))
execution = engine.create_execution_context()
shaped(execution, engine, BATCH.shape)
stream = cuda.Stream()
found = [enqueue(execution, engine, [BATCH.ctypes.data] * 3, stream)]
for call in (stream.synchronize, stream.synchronize, lambda: cuda.mem_alloc(1), lambda: cuda.Event()):
    try:
        call()
    except cuda.LogicError as error:
        found.append(str(error))
say(found + [enqueue(execution, engine, [0] * 3, stream)])
"""
    broken = "an illegal memory access was encountered"
    calls = ["cuStreamSynchronize", "cuStreamSynchronize", "cuMemAlloc", "cuEventCreate"]
    assert ask("8.2", script) == [True, *(f"{call} failed: {broken}" for call in calls), False]


def test_a_context_belongs_to_its_thread(ask: Ask) -> None:
    script = """
import threading
found = []
def other():
    for call in (lambda: cuda.mem_alloc(1), cuda.Stream, context.push):
        try:
            call()
        except cuda.LogicError as error:
            found.append(str(error))
thread = threading.Thread(target=other)
thread.start()
thread.join()
say(found)
"""
    memory, stream, push = ask("8.2", script)
    assert memory == "cuMemAlloc failed: invalid device context"
    assert stream.endswith("no currently active context?")
    assert push == "cuCtxPushCurrent failed: invalid device context"


def test_a_context_that_is_left_on_the_stack_aborts_the_process(begin: Ask) -> None:
    ran = begin("8.2", "")
    assert ran.returncode == -signal.SIGABRT
    assert "The context stack was not empty" in ran.stderr


@pytest.mark.parametrize("generation", ["8.2", "8.6"])
def test_borrowed_scratch_memory_is_a_capsule_to_8_2_and_a_number_to_8_6(generation: str, ask: Ask) -> None:
    script = """
import ctypes
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
engine = load(build(MODEL))
execution = engine.create_execution_context_without_device_memory()
memory = cuda.mem_alloc(engine.device_memory_size)
taken = []
for given in (int(memory), new(int(memory), None, None)):
    try:
        execution.device_memory = given
        taken.append(True)
    except TypeError:
        taken.append(False)
answer = run(engine, BATCH, execution)[1]
try:
    execution.device_memory
except AttributeError as error:
    say([taken, answer.tolist(), str(error)])
"""
    taken, answer, error = ask(generation, script)
    assert taken == ([False, True] if generation == "8.2" else [True, False])
    assert np.shape(answer) == (3, 18)
    assert error == "unreadable attribute"


@pytest.mark.parametrize("generation", ["10", "11"])
def test_from_10_on_scratch_memory_is_the_callers_by_strategy(generation: str, ask: Ask) -> None:
    script = """
engine = load(build(MODEL))
execution = engine.create_execution_context(trt.ExecutionContextAllocationStrategy.USER_MANAGED)
memory = cuda.mem_alloc(engine.device_memory_size_v2)
found = []
for size in (None, engine.device_memory_size_v2 - 1, engine.device_memory_size_v2):
    if size is not None:
        execution.set_device_memory(int(memory), size)
    try:
        found.append(np.shape(run(engine, BATCH, execution)[0]))
    except AssertionError:
        found.append(lines.pop())
say(found)
"""
    without, small, answer = ask(generation, script)
    assert "has no device memory" in without
    assert "has no device memory" in small
    assert answer == [3, 4]


def test_two_engines_can_share_scratch_memory_one_after_the_other_and_a_run_overwrites_it(ask: Ask) -> None:
    script = """
plan = build(MODEL)
engines = [load(plan), load(plan)]
memory = cuda.mem_alloc(engines[0].device_memory_size)
answers = []
for engine in engines:
    execution = engine.create_execution_context_without_device_memory()
    execution.device_memory = int(memory)
    answers.append(run(engine, BATCH, execution)[0].tolist())
after = np.zeros(engines[0].device_memory_size, np.uint8)
cuda.memcpy_dtoh(after, memory)
say([answers[0] == answers[1], set(after.tolist()) == {0xAA}])
"""
    assert ask("8.6", script) == [True, True]


@pytest.mark.parametrize(("profile", "found"), [("tx2", "operation not supported"), ("discrete", [0, 1, 2, 3])])
def test_host_memory_can_be_registered_where_the_board_can(profile: str, found: Any, ask: Ask) -> None:
    script = """
own = np.arange(4, dtype=np.float32)
try:
    registered = cuda.register_host_memory(own, cuda.mem_host_register_flags.DEVICEMAP)
    copy = np.zeros(4, np.float32)
    cuda.memcpy_dtoh(copy, registered.base.get_device_pointer())
    registered.base.unregister()
    say(copy.tolist())
except cuda.LogicError as error:
    say(str(error).split(": ")[1])
"""
    assert ask("8.2", script, profile=profile) == found


def test_page_locked_memory_is_an_array_that_knows_its_owner(ask: Ask) -> None:
    script = """
array = cuda.pagelocked_empty((2, 3), np.float32)
array[:] = 7
block = cuda.mem_alloc(array.nbytes)
cuda.memcpy_htod(block, array)
back = np.zeros((2, 3), np.float32)
cuda.memcpy_dtoh(back, block)
say([type(array.base).__name__, array.flags.c_contiguous, back.tolist()])
"""
    assert ask("8.2", script) == ["PagelockedHostAllocation", True, [[7.0] * 3] * 2]


def test_an_engine_and_its_context_take_memory_until_they_are_gone(ask: Ask) -> None:
    script = """
plan, free = build(MODEL), lambda: cuda.mem_get_info()[0]
steps = [free()]
engine = load(plan)
steps.append(free())
execution = engine.create_execution_context()
steps.append(free())
del execution, engine
steps.append(free())
say([steps[0] - step for step in steps])
"""
    assert ask("8.2", script, engine_bytes=1000, scratch_bytes=512) == [0, 1000, 1512, 0]


def test_an_engine_that_does_not_fit_is_none(ask: Ask) -> None:
    script = "say([load(build(MODEL)), lines])"
    engine, lines = ask("8.2", script, total_bytes=10000, used_bytes=9500, engine_bytes=501)
    assert engine is None
    assert "out of memory" in lines[0]
    assert ask("8.2", "say(load(build(MODEL)) is None)", total_bytes=10000, used_bytes=9500, engine_bytes=500) is False


def test_events_measure_the_run_between_them(ask: Ask) -> None:
    script = """
engine = load(build(MODEL))
execution, stream = engine.create_execution_context(), cuda.Stream()
began, ended, never = cuda.Event(), cuda.Event(), cuda.Event()
shaped(execution, engine, BATCH.shape)
blocks = [cuda.mem_alloc(4096) for _ in names(engine)]
began.record(stream)
enqueue(execution, engine, [int(block) for block in blocks], stream)
ended.record(stream)
errors = []
for pair in ((began, ended), (began, never)):
    try:
        pair[0].time_till(pair[1])
    except cuda.LogicError as error:
        errors.append(str(error).split(": ")[1])
ended.synchronize()
say([errors, began.time_till(ended)])
"""
    errors, device_ms = ask("8.2", script, faults={"enqueue_ms": 30})
    assert errors == ["device not ready", "invalid resource handle"]
    assert device_ms >= 30


def test_dims_compare_with_tuples_and_never_with_each_other(ask: Ask) -> None:
    script = """
dims = trt.Dims((1, -1))
try:
    dims == trt.Dims((1, -1))
except TypeError:
    say([dims == (1, -1), dims == [1, 2], tuple(dims), len(dims)])
"""
    assert ask("10", script) == [True, False, [1, -1], 2]
