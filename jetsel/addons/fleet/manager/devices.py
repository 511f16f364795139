"""Devices of the fleet, summed up from their lines: the newest line, the traffic, the models' times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from jetsel.addons.fleet.manager.metadata import Metadata
from jetsel.addons.fleet.usage import Usage

# A series is ordered by its sequence, whatever the clocks say; a device's series by the upload of their first lines.
_NEWEST = """
SELECT device, uploaded_s, to_json(one) FROM usage AS one SEMI JOIN (
    SELECT device, series, sequence FROM lines
    QUALIFY row_number() OVER (PARTITION BY device ORDER BY series_s DESC, sequence DESC) = 1
) USING (device, series, sequence)"""
_MISSING = """
SELECT device, sum(step - 1), min(series || '-' || (sequence - step + 1)) FILTER (step > 1) FROM (
    SELECT device, series, sequence,
        sequence - lag(sequence, 1, 0) OVER (PARTITION BY device, series ORDER BY sequence) AS step FROM usage
) GROUP BY device"""
_LINES = """
CREATE OR REPLACE TEMP TABLE lines AS SELECT *, uploaded_s >= last_s - ? * 86400 AS is_recent,
    rise(asked_total, lag(asked_total) OVER of_daemon) AS asked, rise(ok_total, lag(ok_total) OVER of_daemon) AS ok,
    rise(energy_j, lag(energy_j) OVER of_daemon) AS took_j
FROM (SELECT *, max(uploaded_s) OVER (PARTITION BY device) AS last_s,
    min(uploaded_s) OVER (PARTITION BY device, series) AS series_s,
    coalesce(list_sum(map_values(requests)), 0) AS asked_total,
    coalesce(list_sum(map_extract(requests, 'ok')), 0) AS ok_total FROM (SELECT *, unnest(daemon) FROM usage))
WINDOW of_daemon AS (PARTITION BY device, instance ORDER BY series_s, sequence)"""
_RISE = "CREATE OR REPLACE TEMP MACRO rise(total, before) AS greatest(0, total - coalesce(before, 0))"
_PERIOD = """
SELECT device, median(took_s / steps) FROM (
    SELECT device, at_s - lag(at_s) OVER line AS took_s, sequence - lag(sequence) OVER line AS steps
    FROM lines WHERE is_recent WINDOW line AS (PARTITION BY device, series ORDER BY sequence)
) WHERE took_s / steps >= 0.1 GROUP BY device"""
_MEANS = """
SELECT device, coalesce(avg(asked) FILTER (NOT canary), 0), avg(watts), avg(took_j) FILTER (NOT canary)
FROM lines WHERE is_recent GROUP BY device"""
_FAMILIES = """
CREATE OR REPLACE TEMP TABLE families AS SELECT *, is_recent AND NOT canary AS counts,
    rise(family.answers, lag(family.answers) OVER (
        PARTITION BY device, instance, family.name ORDER BY series_s, sequence)) AS answers
FROM (SELECT device, instance, series_s, sequence, is_recent, canary, unnest(families) AS family FROM lines)"""
_ANSWERS = "SELECT device, family.name, sum(answers) FROM families WHERE counts GROUP BY ALL"
_CLASSES = """
SELECT device, name, label, sum(answers) FROM (
    SELECT device, name, class.key AS label, counts, rise(class.value, lag(class.value) OVER (
        PARTITION BY device, instance, name, class.key ORDER BY series_s, sequence)) AS answers
    FROM (SELECT device, instance, series_s, sequence, counts, family.name AS name,
        unnest(map_entries(family.classes)) AS class FROM families)
) WHERE counts AND answers > 0 GROUP BY ALL"""
_TAKES = """
SELECT device, name, model.name, {} FROM (
    SELECT device, family.name AS name, unnest(family.models) AS model, (series_s, sequence) AS reported
    FROM families WHERE is_recent
) GROUP BY ALL"""
_SERVED = """
SELECT device, plan, coalesce(sum(asked) FILTER (NOT canary), 0),
    coalesce(sum(greatest(0, asked - ok)) FILTER (NOT canary), 0), median(p95_ms)
FROM lines WHERE is_recent GROUP BY ALL"""


@dataclass(frozen=True)
class ServedPlan:
    """Requests to a device while one plan was in use. p95_ms: median of its lines, None if no line has it."""

    requests: int
    failed: int
    p95_ms: float | None


@dataclass(frozen=True)
class Costs:
    """Time, energy and memory of one model on one device, by its last report; None: never reported."""

    cost_ms: float | None
    p95_ms: float | None
    energy_mj: float | None
    memory_mb: float | None


@dataclass(frozen=True)
class Device:
    """One device. line, uploaded_s: its newest line, and the storage's time of its upload, in seconds since 1970.

    missing, missing_first: lines that never came, counted from the first of each series. Of the last days: period_s,
    median time between lines by the device's clock, None with fewer than two (less than 0.1 s does not count); rate_hz,
    requests per second; idle_w, mean power without the requests; answers by family; classes, by family and label;
    takes, by family and model; served, by serial of the plan in use, 0 for none.
    """

    line: Usage
    uploaded_s: float
    missing: int
    missing_first: str | None
    period_s: float | None
    rate_hz: float | None
    idle_w: float | None
    answers: Mapping[str, int]
    classes: Mapping[str, Mapping[str, int]]
    takes: Mapping[str, Mapping[str, Costs]]
    served: Mapping[int, ServedPlan]


def read_devices(table: Metadata, days: float = 7.0) -> dict[str, Device]:
    """Return every device that ever reported, by name. days: the period to sum up, before its newest upload.

    Raises RepositoryError.
    """
    table.query(_RISE)
    table.query(_LINES, days)
    table.query(_FAMILIES)
    figures = [f"arg_max(model.{name}, reported) FILTER (model.{name} IS NOT NULL)" for name in Costs.__annotations__]
    missing = _nested(table.query(_MISSING), 1, lambda count, first: (int(count), first))
    periods = _nested(table.query(_PERIOD), 1, float)
    means = _nested(table.query(_MEANS), 1, lambda *means: means)
    answers, classes = _nested(table.query(_ANSWERS), 2, int), _nested(table.query(_CLASSES), 3, int)
    takes = _nested(table.query(_TAKES.format(", ".join(figures))), 3, Costs)
    served = _nested(table.query(_SERVED), 2, lambda requests, failed, ms: ServedPlan(int(requests), int(failed), ms))
    devices = {}
    for name, uploaded_s, line in sorted(table.query(_NEWEST)):
        period_s, (requests, watts, energy_j) = periods.get(name), means[name]
        idle_w = None if None in (period_s, watts, energy_j) else max(0.0, watts - energy_j / period_s)
        devices[name] = Device(
            line=msgspec.json.decode(line, type=Usage),
            uploaded_s=uploaded_s,
            missing=missing[name][0],
            missing_first=missing[name][1],
            period_s=period_s,
            rate_hz=None if period_s is None else requests / period_s,
            idle_w=idle_w,
            answers=answers.get(name, {}),
            classes=classes.get(name, {}),
            takes=takes.get(name, {}),
            served=served[name],
        )
    return devices


def _nested(rows: list[Any], keys: int, made: Callable[..., Any]) -> dict[Any, Any]:
    """Return the rows as nested mappings by their first columns; the innermost values are made of the other columns."""
    nested: dict[Any, Any] = {}
    for row in rows:
        inner = nested
        for key in row[: keys - 1]:
            inner = inner.setdefault(key, {})
        inner[row[keys - 1]] = made(*row[keys:])
    return nested
