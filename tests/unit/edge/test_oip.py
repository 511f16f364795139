"""What is sent to an edge and what its answers become; which of several edges is asked, and what goes to the next."""

import json
import queue
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.base.config import parse
from jetsel.base.errors import ConfigError, EngineDiedError, JetselError
from jetsel.edge.messages import AskResult, Remote, State
from jetsel.edge.models import open_edge
from jetsel.edge.oip import MOST_CHARACTERS, EdgeAnswerError, check_metadata, decode_reply, encode_request
from jetsel.edge.runner import EdgeClient, EdgePayload, _PendingRequest
from jetsel.edge.server import EdgeServer, EdgeServers, LinkEstimate
from jetsel.gateway import tensors
from jetsel.zoo import STARTER, scan

WNIDS = ["n1", "n2", "n3", "n4"]
RANKED = Remote("pets.l", "encoded", "ranked", None, None, WNIDS, None, b"", b"")
LOGITS = Remote("net", "tensor", "logits", "input", "output", WNIDS, None, b"", b"")
METADATA = {
    "inputs": [{"name": "input", "datatype": "FP32", "shape": [-1, 3, 2, 2]}],
    "outputs": [{"name": "output", "datatype": "FP32", "shape": [-1, 4]}],
}


def encode(plain: Any) -> bytes:
    return json.dumps(plain).encode()


def vector(numbers: list[float], **change: Any) -> tuple[bytes, int]:
    """A reply with these numbers as binary, and how long its JSON is."""
    binary = np.array(numbers, "<f4").tobytes()
    output = {"name": "output", "datatype": "FP32", "shape": [1, 4], "parameters": {"binary_data_size": len(binary)}}
    head = json.dumps({"model_name": "net", "outputs": [output | change]}).encode()
    return head + binary, len(head)


def ranked(*entries: str, **told: Any) -> tuple[bytes, None]:
    outputs = [{"name": "top_k", "datatype": "BYTES", "shape": [1, len(entries)], "data": list(entries)}]
    return json.dumps({"outputs": outputs, "parameters": told}).encode(), None


def test_our_own_gateway_reads_what_is_sent() -> None:
    (head, binary), headers = encode_request(RANKED, b"\xff\xd8photograph", None)
    asked, images = tensors.read(head + binary, int(headers["Inference-Header-Content-Length"]))
    assert [bytes(image) for image in images] == [b"\xff\xd8photograph"]
    assert (asked.parameters.top_k, [wanted.name for wanted in asked.outputs]) == (4, ["top_k"])


def test_a_tensor_is_sent_with_its_shape() -> None:
    (head, binary), headers = encode_request(LOGITS, b"\0" * 48, [1, 3, 2, 2])
    asked = json.loads(head)
    assert headers["Inference-Header-Content-Length"] == str(len(head))
    assert asked["inputs"] == [
        {"datatype": "FP32", "shape": [1, 3, 2, 2], "name": "input", "parameters": {"binary_data_size": len(binary)}}
    ]


def test_a_server_without_the_binary_extension_is_sent_the_same_numbers_as_json() -> None:
    numbers = np.linspace(-1, 1, 12, dtype="<f4")
    (body,), headers = encode_request(LOGITS, numbers.tobytes(), [1, 3, 2, 2], is_binary=False)
    assert headers == {"Content-Type": "application/json"}
    (tensor,) = json.loads(body)["inputs"]
    assert (tensor["name"], tensor["datatype"], tensor["shape"]) == ("input", "FP32", [1, 3, 2, 2])
    assert tensor["data"] == pytest.approx(numbers, abs=1e-7)
    assert len(body) < 12 * len(numbers) + 100, "no digits that mean nothing"


def test_ranked_labels_become_probabilities_of_which_the_others_share_the_rest() -> None:
    numbers, server_ms = decode_reply(RANKED, *ranked("0.7:n3:cat", "0.2:n1:a:b", total_ms=4.5))
    assert numbers == pytest.approx([0.2, 0.05, 0.7, 0.05])
    assert (numbers.dtype, server_ms) == (np.float32, 4.5)


def test_numbers_are_put_where_the_mapping_says() -> None:
    numbers, server_ms = decode_reply(LOGITS, *vector([1, 2, 3, 4]))
    assert numbers.tolist() == [1, 2, 3, 4]
    assert server_ms is None, "it does not say"
    placed = msgspec.structs.replace(LOGITS, places=[3, 1])
    assert decode_reply(placed, *vector([5, 7]))[0].tolist() == [5, 7, 5, 5], (
        "what it does not know is as unlikely as its least"
    )


@pytest.mark.parametrize(
    ("remote", "answer", "words"),
    [
        (RANKED, ranked("0.7:n9:dog"), "not a class of the local family"),
        (RANKED, ranked("0.7:n1:cat", "0.7:n2:dog"), "total probability of 1.4"),
        (RANKED, ranked("nan:n1:cat"), "total probability of nan"),
        (LOGITS, vector([1, 2, 3]), "4 finite numbers are expected"),
        (LOGITS, vector([1, 2, 3, np.inf]), "4 finite numbers are expected"),
        (LOGITS, vector([1, 2, 3, 4], datatype="INT64"), "INT64"),
        (LOGITS, (b"<html>", None), "no logits"),
        (msgspec.structs.replace(LOGITS, output="probabilities"), vector([1, 2, 3, 4]), "did not return probabilities"),
    ],
)
def test_what_is_no_answer_is_refused_with_what_is_wrong(remote: Remote, answer: Any, words: str) -> None:
    with pytest.raises(EdgeAnswerError, match=words):
        decode_reply(remote, *answer)


@pytest.mark.parametrize(
    "answer",
    [
        ranked("0.7:n1:cat", total_ms=10**400),
        vector([1, 2, 3, 4], parameters={"binary_data_size": 10**400}),
        vector([1, 2, 3, 4], parameters={}, data=[10**400] * 4),
    ],
)
def test_numbers_without_end_are_no_answer(answer: Any) -> None:
    with pytest.raises(EdgeAnswerError, match="OverflowError"):
        decode_reply(RANKED if answer[1] is None else LOGITS, *answer)


def test_what_is_said_of_an_answer_is_short() -> None:
    with pytest.raises(EdgeAnswerError) as caught:
        decode_reply(LOGITS, *vector([1, 2, 3, 4], datatype="x" * 1_000_000))
    assert len(str(caught.value)) == MOST_CHARACTERS


@given(st.sampled_from([RANKED, LOGITS]), st.binary(max_size=200), st.none() | st.integers(0, 300))
def test_arbitrary_answers_raise_our_error_alone(remote: Remote, body: bytes, json_bytes: int | None) -> None:
    with pytest.raises(EdgeAnswerError):
        decode_reply(remote, body, json_bytes)


def test_a_model_that_is_not_as_it_is_mapped_is_refused_at_connection() -> None:
    check_metadata(RANKED, encode(tensors.metadata()))
    assert (
        check_metadata(msgspec.structs.replace(LOGITS, input_name=None, output_name=None), encode(METADATA)) == LOGITS
    ), "named by it"
    with pytest.raises(EdgeAnswerError, match="takes FP32, but the configuration sends it BYTES"):
        check_metadata(msgspec.structs.replace(LOGITS, input="encoded"), encode(METADATA))
    with pytest.raises(EdgeAnswerError, match="returns 4 numbers, but has 3 labels"):
        check_metadata(msgspec.structs.replace(LOGITS, wnids=WNIDS[:3]), encode(METADATA))
    with pytest.raises(EdgeAnswerError, match="no input any, output logits"):
        check_metadata(msgspec.structs.replace(LOGITS, input_name=None, output_name="logits"), encode(METADATA))
    for lie in ({}, {"inputs": [], "outputs": []}, {"inputs": 7, "outputs": None}, []):
        with pytest.raises(EdgeAnswerError):
            check_metadata(LOGITS, encode(lie))
    for odd in (b"", b"[" * 1_000_000, b"{", b"\xff"):
        with pytest.raises(EdgeAnswerError):
            check_metadata(LOGITS, odd)


def test_before_there_is_evidence_it_is_twice_the_slowest_and_more_for_more_bytes() -> None:
    link = LinkEstimate()
    assert link.estimate(1000) is None
    link.observe(1000, 10.0)
    link.observe(1000, 30.0)
    assert link.estimate(1000) == (60.0, 0.0)
    assert link.estimate(500) == (60.0, 0.0)
    assert link.estimate(3000) == (180.0, 0.0)


def test_latency_and_bandwidth_are_told_apart_by_sizes() -> None:
    link, chance = LinkEstimate(), np.random.default_rng(1)
    for size in chance.integers(10_000, 200_000, 60).tolist():
        link.observe(size, 40 + size / 2500)
    for size in (0, 50_000, 400_000):
        found = link.estimate(size)
        assert found[0] == pytest.approx(40 + size / 2500, rel=1e-3)


def test_photographs_of_one_size_give_no_bandwidth_and_noise_a_deviation() -> None:
    link, chance = LinkEstimate(), np.random.default_rng(2)
    for _ in range(400):
        link.observe(50_000, float(chance.normal(60, 8)))
    mean_ms, deviation_ms = link.estimate(100_000) or (0, 0)
    assert mean_ms == pytest.approx(60, abs=6)
    assert 4 < deviation_ms < 14


def test_a_path_that_changes_is_followed() -> None:
    link = LinkEstimate()
    for time_ms in [20.0] * 100 + [200.0] * 60 + [20.0] * 60:
        link.observe(50_000, time_ms)
    found = link.estimate(50_000)
    assert found[0] == pytest.approx(20, abs=15)


REMOTES = {name: Remote(name, "encoded", "ranked", None, None, ["n1"], None, b"", b"") for name in ("l", "xl")}


def look(number: int, took_ms: float | None, refused: dict[str, str] | None = None) -> State:
    """What a look shows; took_ms: with the first model, None where the edge is away."""
    if took_ms is None:
        return State(number, "away")
    return State(number, None, refused or {}, [("l", AskResult(-1, b"", None, 100, 100, took_ms, 1.0))])


def choice_of(*took_ms: float | None) -> EdgeServers:
    made = EdgeServers([EdgeServer(f"http://edge-{number}", REMOTES) for number in range(len(took_ms))])
    for number, one_ms in enumerate(took_ms):
        see(made, number, one_ms)
    return made


def see(choice: EdgeServers, number: int, took_ms: float | None) -> int:
    """Look at an edge; return the number of the one that is in use then."""
    choice.servers[number].update(look(number, took_ms))
    choice.reconsider(choice.servers[number])
    return choice.servers.index(choice.current)


def test_another_comes_into_use_once_it_was_faster_by_a_fifth_twice_in_a_row() -> None:
    choice = choice_of(100.0, 79.0)
    assert choice.current is choice.servers[0], "once is chance"
    assert see(choice, 1, 79.0) == 1
    assert choice.handovers == 1
    assert [see(choice, 0, 75.0) for _ in range(8)] == [1] * 8, "less than a fifth of a difference is none"
    assert [see(choice, 1, took_ms) for took_ms in (300.0, 79.0)] == [1, 1], "only a look at the other can tell"


def test_the_fastest_that_is_there_follows_at_once_on_one_that_goes() -> None:
    choice = choice_of(10.0, 90.0, 30.0)
    assert see(choice, 0, None) == 2
    assert see(choice, 2, None) == 1
    assert see(choice, 1, None) == 1, "none is there"
    assert see(choice, 0, 500.0) == 0
    assert choice.handovers == 3


def test_a_model_is_asked_in_the_one_in_use_or_in_another_that_has_it() -> None:
    choice = choice_of(10.0, 90.0, 30.0)
    first, slow, fast = choice.servers
    assert choice.servers_for("xl") == [first, fast, slow]
    first.update(look(0, 10.0, {"xl": "it is not there"}))
    assert choice.servers_for("xl") == [fast, slow]
    assert choice.servers_for("xl", excluded=[fast]) == [slow]
    assert choice.servers_for("l") == [first, fast, slow]


def test_a_look_at_which_it_was_no_faster_begins_the_count_anew() -> None:
    choice = choice_of(100.0, 10.0)
    choice.servers[1].reason = "away"
    choice.reconsider(choice.servers[1])
    assert [see(choice, 1, 10.0) for _ in range(2)] == [0, 1], "one look before does not count"


FAILED = AskResult(7, None, "the link is cut", 100, 0, 5.0, None)


@pytest.mark.parametrize("left_s", [600.0, -0.001], ids=["in time", "too late"])
def test_what_failed_is_sent_to_the_next_edge_only_before_its_deadline(left_s: float) -> None:
    edge = object.__new__(EdgeClient)  # without its child: what came from it is brought here
    edge._servers = EdgeServers([EdgeServer(f"http://edge-{number}", REMOTES) for number in range(2)])
    edge._under_way, edge._outbox = {}, queue.SimpleQueue()
    for server in edge._servers.servers:
        server.reason = None
    came: list[AskResult | JetselError] = []
    request = _PendingRequest("l", EdgePayload(b"image"), time.monotonic() + left_s, came.append, edge._servers.current)
    edge._deliver_or_retry(request, FAILED)
    if left_s > 0:
        assert (came, edge._outbox.qsize(), edge._under_way) == ([], 1, {7: request})
        assert request.server is edge._servers.servers[1]
        edge._deliver_or_retry(request, FAILED)
        assert edge._outbox.qsize() == 1, "no third edge is there"
    assert [type(one) for one in came] == [EngineDiedError]
    assert edge._outbox.qsize() == (1 if left_s > 0 else 0)


def test_a_token_that_every_user_may_read_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o644)
    config = parse(f'[edge]\nurl = "http://edge"\ntoken_file = "{token}"\n[edge.models.xl]\nremote = "starter.xl"')
    with pytest.raises(ConfigError, match=r"edge\.token_file.*chmod o-rwx"):
        open_edge(config, scan([STARTER]).families["starter"])
