"""Boxes in a request: each is answered as its pixels alone are, a bad one fails alone, and limits count each."""

import asyncio
from typing import Any

import jetsel
from jetsel.errors import BadRequestError
from jetsel.wire import Answer
from tests.system.daemons import Connect, Daemon, Peer, Start, drawn, encoded
from tests.system.gateway.gateways import opened

PICTURE = drawn(5)
HEIGHT, WIDTH = PICTURE.shape[:2]
BOXES = [(0, 0, WIDTH, HEIGHT), (10, 20, 64, 50), (WIDTH - 40, HEIGHT - 30, 40, 30), (3, 4, 1, 1)]
OUTSIDE = (WIDTH, 0, 10, 10)


def cut(box: tuple[int, int, int, int]) -> bytes:
    """The pixels of a box, in a file of their own."""
    x, y, width, height = box
    return encoded(PICTURE[y : y + height, x : x + width], ".png")


def seen(answer: dict[str, Any]) -> list[tuple[str, float]]:
    """The labels of an answer, as nearly as batches of other sizes give the same numbers."""
    return [(one["label"], round(one["probability"], 4)) for one in answer["top_k"]]


def test_each_box_is_answered_in_order_as_its_pixels_alone_are(peer: Peer) -> None:
    file = encoded(PICTURE, ".png")
    alone = [peer.classify(cut(box), model="m") for box in BOXES]
    in_shares = [[x / WIDTH, y / HEIGHT, w / WIDTH, h / HEIGHT] for x, y, w, h in BOXES]
    for unit, xywh in (("pixels", [list(box) for box in BOXES]), ("shares", in_shares)):
        reply = peer.classify(file, id="b", model="m", boxes={"unit": unit, "xywh": xywh})
        assert (reply["type"], reply["v"], reply["id"]) == ("answers", 1, "b")
        assert [seen(answer) for answer in reply["answers"]] == [seen(answer) for answer in alone]
        assert [(one["width_px"], one["height_px"]) for one in reply["answers"]] == [box[2:] for box in BOXES]


def test_a_bad_box_or_one_in_the_other_unit_fails_alone_with_its_reason(peer: Peer) -> None:
    bad = [list(OUTSIDE), [0, 0, 0, 10], [1, 2, 3], [0, 0, None, 5]]
    boxes = {"unit": "pixels", "xywh": [*bad, [0, 0, 20, 20]]}
    *failures, answer = peer.classify(encoded(PICTURE, ".png"), boxes=boxes)["answers"]
    assert {(one["type"], one["code"]) for one in failures} == {("failure", "bad-request")}
    assert f"{WIDTH} x {HEIGHT}" in failures[0]["message"]
    assert answer["type"] == "answer"
    for unit, other, wrong in (("pixels", "shares", [0.1, 0.1, 0.5, 1]), ("shares", "pixels", [0, 0, 60, 60])):
        boxes = {"unit": unit, "xywh": [wrong, [0, 0, 1, 1.2]]}
        failed, answer = peer.classify(encoded(PICTURE, ".png"), model="m", boxes=boxes)["answers"]
        assert (failed["code"], other in failed["message"], answer["type"]) == ("bad-request", True, "answer")


def test_an_image_that_cannot_be_read_is_one_failure(peer: Peer) -> None:
    file = encoded(PICTURE, ".png")
    reply = peer.classify(file[: len(file) // 2], boxes={"unit": "pixels", "xywh": [[0, 0, 9, 9], [1, 1, 9, 9]]})
    assert (reply["type"], reply["code"]) == ("failure", "bad-image")


def test_what_no_request_may_have_is_refused_as_a_whole(peer: Peer, jpeg: bytes) -> None:
    for xywh in ([], [[0, 0, 9, 9]] * 65, [["a", 0, 1, 1]]):
        reply = peer.classify(jpeg, boxes={"unit": "pixels", "xywh": xywh})
        assert (reply["type"], reply["code"]) == ("failure", "bad-request")
        assert "boxes.xywh" in reply["message"]


def test_many_boxes_count_as_one_request_and_as_all_their_pixels_and_let_others_in_between(
    start: Start, connect: Connect
) -> None:
    limits = "workers = 1\nqueue_requests = 2\nclient_requests = 2\nqueue_megapixels = 0.62\n"
    daemon = start(f"[server]\n{limits}[observe]\nrecent_answers = 100\n")
    peer, file = connect(daemon), encoded(PICTURE, ".png")
    # 620,000 pixels: an image has 19,200, a box 9,600, and 400 one that is cut.
    box, is_cut = [0, 0, 120, 80], [WIDTH - 20, HEIGHT - 20, 40, 40]
    boxes = {"unit": "pixels", "xywh": [box] * 60 + [is_cut] * 4}
    peer.send({"type": "classify", "id": "boxes", "boxes": boxes}, file)
    peer.send({"type": "classify", "id": "other"}, file)
    replies = {reply["type"]: reply for reply in (peer.receive() for _ in range(2))}
    assert [one["type"] for one in replies["answers"]["answers"]] == ["answer"] * 64
    status = peer.status()
    order = [one["id"] for one in reversed(status["recent"])]
    assert len(order) == status["requests"]["ok"] == 65
    assert order.index("other") < 32
    assert (status["queue"]["bytes"], status["queue"]["pixels"]) == (0, 0)
    too_many = {"unit": "shares", "xywh": [[0, 0, 120 / WIDTH, 80 / HEIGHT]] * 63}
    reply = peer.classify(file, boxes=too_many)
    assert (reply["code"], reply["retry"]) == ("image-too-large", False)
    assert "fewer boxes" in reply["message"]


def test_the_clients_give_a_list_and_the_gateway_the_same(shared_daemon: Daemon) -> None:
    file = encoded(PICTURE, ".png")
    boxes = [BOXES[1], OUTSIDE]
    with jetsel.Client(shared_daemon.endpoint) as client:
        answer, error = client.classify(file, boxes=boxes, model="m")
        assert client.classify(file, boxes=[]) == []
    assert isinstance(answer, Answer)
    assert isinstance(error, BadRequestError)

    async def overlapping() -> list[Any]:
        async with jetsel.AsyncClient(shared_daemon.endpoint) as client:
            return await client.classify(PICTURE, boxes=[[0.0, 0.0, 0.5, 0.5]], boxes_unit="shares", model="m")

    (half,) = asyncio.run(overlapping())
    assert (half.width_px, half.height_px) == (WIDTH // 2, HEIGHT // 2)
    with opened(shared_daemon.endpoint) as gateway:
        query = ";".join(",".join(str(number) for number in box) for box in boxes)
        kind = {"Content-Type": "image/png"}
        status, body, _ = gateway.ask("POST", f"/classify?model=m&boxes={query}", file, kind)
        assert status == 200
        assert body["answers"][0]["label"] == answer.label
        assert body["answers"][1] == {"error": str(error), "code": "bad-request", "retry": False}
        status, body, _ = gateway.ask("POST", "/classify?boxes=1,2,x", file, kind)
        assert (status, body["code"]) == (400, "bad-request")
