"""Labels of crowded points find places of their own."""

from __future__ import annotations

from itertools import combinations

from jetsel.calibrate.report.places import Box, places

PLOT = Box(180, 140, 300, 240)


def test_a_lone_point_is_labelled_right_beside_its_mark() -> None:
    (box,) = places([(100, 100)], [(20, 14)], PLOT)
    assert (box.x, box.y) == (100 + 5 + 10, 100)  # half a mark, half a label


def test_a_point_at_the_right_edge_is_labelled_on_its_left() -> None:
    (box,) = places([(328, 100)], [(20, 14)], PLOT)
    assert (box.x, box.y) == (328 - 5 - 10, 100)


def test_labels_of_thirty_points_in_a_heap_overlap_neither_each_other_nor_a_mark() -> None:
    points = [(180 + i % 6, 140 + i // 6) for i in range(30)]
    boxes = places(points, [(18, 14)] * 30, PLOT)
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    assert not any(box.overlaps(Box(x, y, 8, 8)) for box in boxes for x, y in points)
    assert all(box.inside(PLOT) for box in boxes)


def test_the_gap_is_measured_to_the_nearest_edge() -> None:
    box = Box(0, 0, 20, 10)
    assert box.gap((13, 9)) == 5  # 3 right of its side, 4 above its top
    assert box.nearest((13, 9)) == (10, 5)
    assert box.gap((1, 1)) == 0
