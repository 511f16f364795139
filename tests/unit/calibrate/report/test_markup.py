"""Strings never become markup, and what no page can carry is replaced."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from jetsel.calibrate.report.drawing import fitted, width_of
from jetsel.calibrate.report.markup import document, el


def test_text_and_attributes_are_escaped() -> None:
    page = document(el("head"), el("body", el("p", '<b> & "quoted"', title='"><script>'), "tail <i>"))
    assert '<p title="&quot;&gt;<script&gt;">' in page  # inside the quotes nothing begins a tag
    assert '&lt;b&gt; &amp; "quoted"</p>tail &lt;i&gt;' in page


def test_what_a_page_cannot_carry_is_replaced() -> None:
    node = el("p", "a\x00b\udc80c\u202ed")
    assert node.text == "a\ufffdb\ufffdc\ufffdd"
    assert ET.fromstring(ET.tostring(node, encoding="unicode")).text == node.text


def test_none_is_left_out_and_numbers_are_short() -> None:
    node = el("line", None, "a", el("b"), None, "c", x1=1.2345, x2=3.0, y=7, class_=None, text_anchor="end")
    assert ET.tostring(node, encoding="unicode") == '<line x1="1.23" x2="3" y="7" text-anchor="end">a<b />c</line>'


def test_a_long_name_keeps_its_ends_within_the_room() -> None:
    name = "a model with a very long name, version 12"
    short = fitted(name, 120)
    assert width_of(short) <= 120
    assert short.startswith("a mod")
    assert short.endswith("12")
    assert "\u2026" in short
    assert fitted("xs", 120) == "xs"
