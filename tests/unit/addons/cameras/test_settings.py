"""Names of topics, worked out by hand."""

import hashlib
import unicodedata

import pytest

from jetsel.addons.cameras.settings import topic_name


def digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("front-door_2", "front-door_2"),
        ("front door", "front_door"),
        ("前門", digest("前門")),
        ("Tür", f"T_r_{digest('Tür')}"),
        (unicodedata.normalize("NFD", "Tür"), f"T_r_{digest('Tür')}"),
        ("!", digest("!")),
    ],
)
def test_a_topic_has_letters_digits_and_dashes_alone(name: str, topic: str) -> None:
    assert topic_name(name) == topic
