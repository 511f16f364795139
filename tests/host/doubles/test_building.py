"""The doubles build, keep and refuse plans as TensorRT does, and calibrate as it does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.doubles.interpreter import GENERATIONS
from tests.unit.zoo.making import field

Ask = Callable[..., Any]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_no_name_can_be_added_to_an_object_or_used_that_the_version_lacks(generation: str, ask: Ask) -> None:
    script = """
config = trt.Builder(LOG).create_builder_config()
found = []
for change in (lambda: setattr(config, "max_workspace_sise", 1), lambda: config.nothing, lambda: trt.Nothing,
               lambda: trt.BuilderFlag.NOTHING, lambda: setattr(config, "set_flag", 1)):
    try:
        change()
    except AttributeError as error:
        found.append(type(error).__name__)
say(found)
"""
    assert ask(generation, script) == ["AttributeError"] * 5


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_dynamic_network_without_a_profile_is_not_built(generation: str, ask: Ask) -> None:
    plan, lines = ask(generation, "say([build(MODEL, most=0), lines])")
    assert plan is None
    assert lines == ["Network has dynamic or shape inputs, but no optimization profile has been defined."]


def test_the_parser_of_8_wants_an_explicit_batch_and_that_of_10_does_not(ask: Ask) -> None:
    script = """
network, parser, taken = parsed(trt.Builder(LOG), MODEL, 0)
say([taken, network.num_inputs, [parser.get_error(index).desc() for index in range(parser.num_errors)]])
"""
    taken, inputs, errors = ask("8.2", script)
    assert (taken, inputs) == (False, 0)
    assert "explicit batch" in errors[0]
    assert ask("10", script) == [True, 1, []]


@pytest.mark.parametrize("generation", ["8.2", "10"])
def test_the_flag_for_fp16_rounds_the_answers_to_half_precision(generation: str, ask: Ask, expected: Any) -> None:
    script = "plan = build(MODEL, prepare=lambda config: config.set_flag(trt.BuilderFlag.FP16))\n"
    logits = np.float32(ask(generation, script + "say(run(load(plan), BATCH)[0].tolist())"))
    assert (logits == logits.astype(np.float16)).all()
    assert 0 < np.abs(logits - expected[0]).max() < 0.01


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_plan_that_is_not_whole_gives_none_and_a_line(generation: str, ask: Ask) -> None:
    script = "plan = build(MODEL)\nsay([load(plan[:-1]), load(plan[:30]), load(b'garbage'), load(b''), lines])"
    *engines, lines = ask(generation, script)
    assert engines == [None] * 4
    assert "truncated" in lines[0]
    assert len(lines) == 4


@pytest.mark.parametrize(("change", "word"), [({"version": "8.2.2.1"}, "8.2.2.1"), ({"profile": "orin"}, "Orin")])
def test_a_plan_of_another_version_or_gpu_gives_none(
    change: dict[str, str], word: str, ask: Ask, tmp_path: Path
) -> None:
    plan = tmp_path / "plan"
    ask("8.2", f"say(Path({str(plan)!r}).write_bytes(build(MODEL)))")
    script = f"engine = load(Path({str(plan)!r}).read_bytes())\nsay([engine is None, lines])"
    assert ask("8.2", script) == [False, []]
    refused, lines = ask("8.2", script, **change)
    assert refused
    assert word in lines[0]


def half_model() -> bytes:
    """Return the file of a model that flattens its input, in half precision (see tests/contract/tiny.py)."""

    def value(name: bytes, *extents: int) -> bytes:
        shape = field(1, field(2, b"n")) + b"".join(field(1, field(1, extent)) for extent in extents)
        return field(1, name) + field(2, field(1, field(1, 10) + field(2, shape)))

    graph = field(1, field(1, b"images") + field(2, b"logits") + field(4, b"Flatten")) + field(2, b"half")
    graph += field(11, value(b"images", 3, 2, 3)) + field(12, value(b"logits", 18))
    return field(1, 7) + field(8, field(2, 13)) + field(7, graph)


CALIBRATOR = """
calls, table = [], []
class Calibrator(trt.IInt8EntropyCalibrator2):
    def __init__(self):
        trt.IInt8EntropyCalibrator2.__init__(self)
        self.memory = cuda.mem_alloc(2 * BATCH[0].nbytes)
        self.batches = [BATCH[:2] / 2, BATCH[1:]]
    def get_batch_size(self):
        calls.append("size")
        return 2
    def get_batch(self, names):
        calls.append(names)
        if not self.batches:
            return None
        cuda.memcpy_htod(self.memory, np.ascontiguousarray(self.batches.pop(0)))
        return [int(self.memory)]
    def read_calibration_cache(self):
        calls.append("read")
        return table[0] if table else None
    def write_calibration_cache(self, cache):
        calls.append("write")
        table[:] = [bytes(cache)]
def prepare(config):
    config.set_flag(trt.BuilderFlag.INT8)
    config.int8_calibrator = prepare.calibrator = Calibrator()
"""


@pytest.mark.parametrize("generation", ["8.6", "10"])
def test_a_calibrator_is_asked_for_batches_once_and_its_table_is_kept(generation: str, ask: Ask, expected: Any) -> None:
    script = """
first = build(MODEL, prepare=prepare)
asked = list(calls)
del calls[:]
again = build(MODEL, prepare=prepare)
say([asked, calls, table[0].decode(), first == again, run(load(first), BATCH)[1].tolist()])
"""
    asked, calls, table, same, embedding = ask(generation, CALIBRATOR + script, profile="orin")
    images = ["images"]
    assert asked == ["read", "size", images, images, images, "write"]
    assert calls == ["read"]
    assert table.startswith("TRT-8") if generation == "8.6" else table.startswith("TRT-10")
    assert same
    error = np.abs(np.float32(embedding) - expected[1]).max()
    assert 0 < error <= 0.5 / 127 + 1e-6  # the largest magnitude is 1: half a step of 127


def test_calibration_images_that_are_too_dark_clip_what_is_brighter(ask: Ask) -> None:
    script = """
Calibrator.get_batch = lambda self, names: None if len(calls) > 2 else calls.append(names) or dark(self)
def dark(self):
    cuda.memcpy_htod(self.memory, np.full(BATCH[:2].shape, 0.25, np.float32))
    return [int(self.memory)]
say(float(np.abs(run(load(build(MODEL, prepare=prepare)), BATCH)[1]).max()))
"""
    assert ask("8.6", CALIBRATOR + script, profile="orin") == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("profile", "faults", "word"),
    [("tx2", {}, "native INT8"), ("orin", {"calibrate_none": True}, "no scaling factors")],
)
def test_int8_needs_a_gpu_that_has_it_and_images(profile: str, faults: dict[str, Any], word: str, ask: Ask) -> None:
    plan, lines = ask("8.6", CALIBRATOR + "say([build(MODEL, prepare=prepare), lines])", profile=profile, faults=faults)
    assert plan is None
    assert word in lines[0]


@pytest.mark.parametrize("kind", ["IInt8EntropyCalibrator2", "IProgressMonitor"])
def test_a_subclass_must_call_the_constructor_that_it_overrides(kind: str, ask: Ask) -> None:
    script = f"""
class Mine(trt.{kind}):
    def __init__(self):
        self.mine = 1
try:
    Mine()
except TypeError as error:
    say(str(error))
"""
    assert "must be called when overriding __init__" in ask("10", script)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_timing_cache_spares_the_timing_and_belongs_to_one_device_and_version(
    generation: str, ask: Ask, tmp_path: Path
) -> None:
    path = tmp_path / "cache"
    script = f"""
path = Path({str(path)!r})
def prepare(config):
    prepare.config = config
    for content in ([path.read_bytes()] if path.exists() else []) + [b""]:
        cache = config.create_timing_cache(content)
        if cache is not None and config.set_timing_cache(cache, False):
            break
build(MODEL, prepare=prepare)
path.write_bytes(bytes(prepare.config.get_timing_cache().serialize()))
say([sum("timing tactics" in line for line in details), lines])
"""
    assert ask(generation, script) == [2, []]  # both layers
    assert ask(generation, script) == [0, []]
    timed, lines = ask(generation, script, gpu="another")
    assert timed == 2
    assert "other CUDA properties" in lines[0]
    timed, lines = ask(generation, script, version="9.9.9")
    assert timed == 2
    assert "of another version" in lines[0]


def test_a_progress_monitor_hears_of_each_layer_and_can_end_the_build(ask: Ask) -> None:
    script = """
class Monitor(trt.IProgressMonitor):
    def __init__(self, last):
        trt.IProgressMonitor.__init__(self)
        self.last, self.heard = last, []
    def phase_start(self, phase_name, parent_phase, num_steps):
        self.heard.append(num_steps)
    def step_complete(self, phase_name, step):
        self.heard.append(step)
        return step != self.last
    def phase_finish(self, phase_name):
        self.heard.append("finished")
monitors = [Monitor(None), Monitor(0)]
plans = [build(MODEL, prepare=lambda config: setattr(config, "progress_monitor", monitor)) for monitor in monitors]
say([[plan is None, monitor.heard] for plan, monitor in zip(plans, monitors)])
"""
    assert ask("11", script) == [[False, [2, 0, 1, "finished"]], [True, [2, 0, "finished"]]]


def test_a_strongly_typed_network_takes_no_flag_for_precision(ask: Ask) -> None:
    script = """
typed = 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
plan = build(MODEL, flags=typed, prepare=lambda config: config.set_flag(trt.BuilderFlag.FP16))
say([plan, lines, build(MODEL, flags=typed) is None])
"""
    plan, lines, without = ask("10", script)
    assert (plan, without) == (None, False)
    assert "strongly typed" in lines[0]


@pytest.mark.parametrize("generation", ["10", "11"])
def test_a_half_precision_file_gives_a_typed_engine_with_half_precision_tensors(
    generation: str, ask: Ask, model: Path
) -> None:
    model.write_bytes(half_model())
    script = """
flags = 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
engine = load(build(MODEL, flags=flags))
say([engine.get_tensor_dtype(name) == trt.float16 for name in names(engine)])
"""
    assert ask(generation, script) == [True, True]


def test_too_small_a_workspace_builds_nothing(ask: Ask) -> None:
    script = """
def limit(size_bytes):
    return lambda config: setattr(config, "max_workspace_size", size_bytes)
say([build(MODEL, prepare=limit(size_bytes)) is None for size_bytes in (999, 1000)])
"""
    assert ask("8.2", script, workspace_needed_bytes=1000) == [True, False]


def test_an_operator_that_the_parser_refuses_is_named(ask: Ask) -> None:
    script = """
network, parser, taken = parsed(trt.Builder(LOG), MODEL)
error = parser.get_error(0)
say([taken, parser.num_errors, error.desc(), error.node()])
"""
    assert ask("8.2", script, unsupported_operators=["MatMul"]) == [
        False,
        1,
        "No importer registered for op: MatMul",
        1,
    ]


def test_a_serialized_network_is_a_buffer_and_no_sequence(ask: Ask) -> None:
    script = """
builder = trt.Builder(LOG)
network, _, _ = parsed(builder, MODEL)
network.get_input(0).shape = (2,) + BATCH.shape[1:]
plan = builder.build_serialized_network(network, builder.create_builder_config())
try:
    len(plan)
except TypeError:
    say([plan.nbytes == len(bytes(plan)), len(memoryview(plan)) == plan.nbytes, hasattr(plan, "decode")])
"""
    assert ask("8.2", script) == [True, True, False]
