"""What `jetsel watch` reports of its cameras, and what `status` says of them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Name = Annotated[str, Meta(min_length=1, max_length=128)]
Words = Annotated[str, Meta(max_length=512)]
MOST_CAMERAS = 64
MOST_PICTURE_BYTES = 16_384


class CameraReport(Struct, frozen=True):
    """One camera, or one region of it. Unknown is null.

    reason: why no frame comes, null if frames come. label, wnid, probability, since: of the label that holds, `unknown`
    with the wnid null if a promise does not cover it; null before the first. since: ISO 8601, UTC.
    picture: a small JPEG of the last frame that was looked at, if the owner allows it.
    """

    name: Name
    connected: bool
    region: Name | None
    family: Name | None
    reason: Words | None
    label: Words | None
    wnid: Words | None
    since: Words | None
    probability: float | None
    frames_read: int
    frames_skipped: int
    frames_asked: int
    label_changes: int
    picture: Annotated[bytes, Meta(max_length=MOST_PICTURE_BYTES)] | None = None


class CameraStatus(CameraReport, frozen=True, kw_only=True):
    """A camera as `status` has it. ago_s: since its last report; without one for ten seconds it is left out."""

    ago_s: float
