"""Figures of the fleet's last day for Prometheus, as OpenMetrics."""

import math
from datetime import date, datetime, timezone
from typing import Any, cast

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest

from ._web import Fleet

#: Type of the text, for a server.
CONTENT_TYPE = CONTENT_TYPE_LATEST

#: Labels of a sick machine, which are columns of `sick`.
_OF_SICK = ("machine_id", "name", "family", "kind")

#: Labels of a series of a processor, which are columns of headline.sql. Two series may have one title.
_OF_SERIES = ("cpu_model", "probe", "title", "series_id")


def metrics(fleet: Fleet, day: date | None = None) -> str:
    """Returns the figures of a day, the last one without `day`, as OpenMetrics text. A lake without runs has
    no figures of a day."""
    registry = CollectorRegistry()
    registry.register(_Collected(_families(fleet, day)))
    text: bytes = cast("Any", generate_latest)(registry)
    return text.decode()


class _Collected:
    """Collector of families that are known."""

    def __init__(self, families: list[GaugeMetricFamily]) -> None:
        self.families = families

    def collect(self) -> list[GaugeMetricFamily]:
        return self.families


def _families(fleet: Fleet, day: date | None) -> list[GaugeMetricFamily]:
    days = fleet.days()
    machines = GaugeMetricFamily("latscope_fleet_machines", "Machines that reported on the day")
    runs = GaugeMetricFamily("latscope_fleet_runs", "Runs of the day")
    if not days:
        machines.add_metric([], 0)
        runs.add_metric([], 0)
        return [machines, runs]
    day = day or days[0]
    start = datetime(day.year, day.month, day.day, tzinfo=timezone.utc)
    of_day, judged = fleet.of_day("page_machines", day), fleet.judge(day)
    about = GaugeMetricFamily("latscope_fleet_day_seconds", "Start of the day", unit="seconds")
    about.add_metric([], start.timestamp())
    machines.add_metric([], len(of_day))
    runs.add_metric([], sum(row["runs"] for row in of_day))
    counts = {
        "judged": ("Machines that were compared with peers", len(judged.places)),
        "sick": ("Machines that are slower than their peers", len(judged.sick)),
        "muted": ("Sick machines that somebody looks at, until a day", len(judged.muted)),
        "missing": ("Machines that have not reported for two days", len(fleet.missing(day))),
    }
    plain = [
        GaugeMetricFamily(f"latscope_fleet_{name}", text, value) for name, (text, value) in counts.items()
    ]
    named = GaugeMetricFamily(
        "latscope_fleet_sick_ratio",
        "Sick machines: times as long as on the peers",
        labels=_OF_SICK,
        unit="ratio",
    )
    for row in judged.sick.values():
        # A machine that its quota stops has no ratio, and is listed all the same.
        named.add_metric([row[name] for name in _OF_SICK], math.nan if row["ratio"] is None else row["ratio"])
    return [about, machines, runs, *plain, named, *_latencies(fleet, day)]


def _latencies(fleet: Fleet, day: date) -> list[GaugeMetricFamily]:
    texts = {"p50": "Median over runs of their medians", "p99": "Median over runs of their 99th percentiles"}
    families = [
        GaugeMetricFamily(f"latscope_fleet_{name}_seconds", text, labels=_OF_SERIES, unit="seconds")
        for name, text in texts.items()
    ]
    for row in fleet.of_day("headline", day):
        for family, name in zip(families, texts, strict=True):
            if row[name] is not None:
                family.add_metric([str(row[label]) for label in _OF_SERIES], row[name] / 1e9)
    return families
