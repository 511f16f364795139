"""The Open Inference Protocol, spoken by its maintained client and by hand, and docs/gateway.md as it stands."""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

import jetsel
from tests.system.daemons import Daemon, drawn, encoded
from tests.system.gateway.gateways import Gateway

PICTURES = [encoded(drawn(seed)) for seed in range(12)]


@pytest.fixture
def client(gateway: Gateway) -> Any:
    with triton.InferenceServerClient(f"127.0.0.1:{gateway.port}", concurrency=4) as opened:
        yield opened


def images(pictures: list[bytes]) -> Any:
    tensor = triton.InferInput("image", [len(pictures)], "BYTES")
    tensor.set_data_from_numpy(np.array(pictures, dtype=object))
    return tensor


def test_the_maintained_client_sees_a_server_its_models_and_that_they_are_ready(client: Any) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("starter")
    assert client.is_model_ready("starter.xs", "1.0.0")
    assert not client.is_model_ready("starter.xxs")
    assert client.get_server_metadata()["name"] == "jetsel"
    about = client.get_model_metadata("starter.xs")
    assert (about["name"], about["versions"]) == ("starter.xs", ["1.0.0"])
    assert [one["name"] for one in about["outputs"]] == ["label", "probability", "top_k"]


@pytest.mark.parametrize("is_binary", [True, False])
def test_its_labels_and_probabilities_are_those_of_the_socket(
    client: Any, shared_daemon: Daemon, is_binary: bool
) -> None:
    with jetsel.Client(shared_daemon.endpoint) as socket:
        expected = [socket.classify(picture, top_k=3) for picture in PICTURES]
    names = ("label", "probability", "top_k")
    outputs = [triton.InferRequestedOutput(name, binary_data=is_binary) for name in names]
    found = client.infer("starter", [images(PICTURES)], outputs=outputs, request_id="r7", parameters={"top_k": 3})
    assert [label.decode() if is_binary else label for label in found.as_numpy("label")] == [
        one.label for one in expected
    ]
    assert found.as_numpy("probability") == pytest.approx([one.probability for one in expected])
    assert found.as_numpy("top_k").shape == (len(PICTURES), 3)
    told = found.get_response()
    assert told["id"] == "r7"
    assert json.loads(told["parameters"]["model"]) == [one.model for one in expected]
    assert json.loads(told["parameters"]["ran"]) == [",".join(ran.model for ran in one.ran) for one in expected]


def test_boxes_give_a_row_each_and_one_that_fails_says_why(client: Any, shared_daemon: Daemon) -> None:
    with jetsel.Client(shared_daemon.endpoint) as socket:
        expected, error = socket.classify(PICTURES[0], boxes=[(0, 0, 60, 60), (9999, 0, 9, 9)], model="m", top_k=2)
    parameters = {"boxes": "0,0,60,60;9999,0,9,9", "top_k": 2}
    found = client.infer("starter.m", [images(PICTURES[:1])], parameters=parameters)
    assert found.as_numpy("label").tolist() == [expected.label.encode(), b""]
    assert found.as_numpy("probability") == pytest.approx([expected.probability, float("nan")], nan_ok=True)
    assert found.as_numpy("top_k").shape == (2, 2)
    told = found.get_response()["parameters"]
    assert json.loads(told["error"]) == [None, str(error)]
    assert json.loads(told["model"]) == ["m", None]
    with pytest.raises(InferenceServerException, match="send one with its boxes"):
        client.infer("starter.m", [images(PICTURES[:2])], parameters=parameters)


def test_a_pinned_model_answers_alone_and_pixels_are_read_in_their_order(client: Any, shared_daemon: Daemon) -> None:
    bgr = drawn(3)
    with jetsel.Client(shared_daemon.endpoint) as socket:
        expected = socket.classify(bgr, model="m")
    for channels, pixels in (("rgb", bgr[..., ::-1]), ("bgr", bgr)):
        tensor = triton.InferInput("image", [1, *bgr.shape], "UINT8")
        tensor.set_data_from_numpy(np.ascontiguousarray(pixels[None]))
        found = client.infer("starter.m", [tensor], model_version="1.0.0", parameters={"channels": channels})
        assert found.as_numpy("probability")[0] == pytest.approx(expected.probability, rel=1e-5)
        told = found.get_response()
        assert (told["model_version"], told["parameters"]["policy"]) == ("1.0.0", "single:m")
        assert told["parameters"]["total_ms"] > 0
        assert "energy_mj" not in told["parameters"], "not known is not said"


def test_plain_json_may_repeat_the_name_of_the_model_as_kserve_s_client_does(gateway: Gateway) -> None:
    tensor = {"name": "x", "datatype": "BYTES", "shape": [1], "data": [base64.b64encode(PICTURES[0]).decode()]}
    body = json.dumps({"id": "r1", "model_name": "starter.m", "inputs": [tensor], "outputs": [{"name": "label"}]})
    status, found, _ = gateway.ask("POST", "/v2/models/starter.m/infer", body)
    assert (status, found["id"], found["parameters"]["model"]) == (200, "r1", "m")
    assert [output["name"] for output in found["outputs"]] == ["label"]


@pytest.mark.parametrize(
    ("name", "change", "status", "code", "words"),
    [
        ("starte", {}, 404, "unknown-model", "did you mean starter?"),
        ("starter/versions/1", {}, 404, "unknown-model", "a family has none: leave /versions/1 out"),
        ("starter", {"model_name": "starter.xs"}, 400, "bad-request", "the address names another"),
        ("starter", {"parameters": {"policy": "chian"}}, 404, "unknown-policy", "did you mean chain?"),
        ("starter.xs", {"parameters": {"policy": "chain"}}, 400, "bad-request", "the request to starter"),
        ("starter?policy=chain", {}, 400, "bad-request", "put options into `parameters`"),
        ("starter", {"outputs": [{"name": "logits"}]}, 400, "bad-request", "label, probability, top_k"),
        ("starter", {"parameters": {"deadline_ms": 0.001}}, 504, "deadline", ""),
    ],
)
def test_errors_are_in_the_protocol_s_form_with_the_daemon_s_code(
    gateway: Gateway, name: str, change: dict[str, Any], status: int, code: str, words: str
) -> None:
    tensor = {"name": "x", "datatype": "BYTES", "shape": [1], "data": [base64.b64encode(PICTURES[0]).decode()]}
    name, _, query = name.partition("?")
    body = json.dumps({"inputs": [tensor]} | change)
    got, found, _ = gateway.ask("POST", f"/v2/models/{name}/infer?{query}", body)
    assert (got, found["code"]) == (status, code), found
    assert words in found["error"]


TEXT = (Path(__file__).parents[3] / "docs" / "gateway.md").read_text("utf-8")


def test_its_program_and_its_commands_run(gateway: Gateway, tmp_path: Path, jpeg: bytes) -> None:
    (tmp_path / "cat.jpg").write_bytes(jpeg)
    place = f"127.0.0.1:{gateway.port}"
    (program,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    commands = [["sh", "-ec", line + " --fail -sS"] for line in re.findall(r"^curl .*$", TEXT, re.MULTILINE)]
    assert len(commands) == 4
    for command in [[sys.executable, "-c", program], *commands]:
        command[-1] = command[-1].replace("127.0.0.1:8000", place)
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), command
        assert done.stdout
