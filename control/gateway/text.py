"""The gateway's own metrics as a Prometheus text."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from control.gateway.gateway import Gateway

INSTANCE_GAUGES = {
    "headway_instance_waiting_calls": ("Calls that wait here for the instance.", "n_waiting"),
    "headway_instance_in_flight_calls": ("Calls that the instance has.", "n_running"),
    "headway_instance_queued_work_seconds": ("Estimated time of its unfinished calls.", "queued_work_s"),
    "headway_instance_pinned_conversations": ("Conversations pinned to it.", "pinned"),
}
INSTANCE_COUNTERS = {
    "headway_instance_calls_finished": ("Calls it completed.", "finished"),
    "headway_instance_kv_transfers": ("KV hand-overs begun from it.", "sent"),
    "headway_instance_prefill_tokens": ("Prompt tokens it computed.", "prefill_tokens"),
    "headway_instance_cached_tokens": ("Prompt tokens it found in its cache.", "cached_tokens"),
    "headway_instance_generated_tokens": ("Tokens it generated.", "decode_tokens"),
    "headway_instance_energy_joules": ("Energy it drew, measured or estimated.", "energy_j"),
}


def metrics_text(gateway: "Gateway") -> bytes:
    """All families, as they are now."""
    registry = CollectorRegistry()
    registry.register(Families(gateway))
    return generate_latest(registry) + generate_latest(gateway.durations.registry)


class Families(Collector):
    """Families of one moment."""

    def __init__(self, gateway: "Gateway") -> None:
        self.gateway = gateway

    def collect(self) -> Iterator[Metric]:
        """Of the gateway, then of each instance."""
        yield from self.of_gateway()
        yield from self.of_instances()

    def of_gateway(self) -> Iterator[Metric]:
        """Requests, detours, hand-overs."""
        totals, clock = self.gateway.totals, self.gateway.door.live.world.clock[0]
        yield CounterMetricFamily("headway_requests", "Requests that came.", totals.requests)
        ended = CounterMetricFamily("headway_requests_ended", "Requests by how they ended.", labels=["state"])
        for state, n in sorted(totals.by_state.items()):
            ended.add_metric([state], n)
        yield ended
        named = CounterMetricFamily("headway_requests_named", "Requests by what named their workflow.", labels=["by"])
        for source, n in sorted(totals.by_match.items()):
            named.add_metric([source or "none"], n)
        yield named
        yield CounterMetricFamily("headway_requests_turned_away", "Requests not let in.", totals.turned_away)
        yield CounterMetricFamily("headway_server_faults", "Times a server failed a call.", totals.faults)
        yield CounterMetricFamily("headway_reroutes", "Times a call then went to another server.", totals.reroutes)
        yield CounterMetricFamily("headway_kv_hand_overs", "Decode legs that began.", totals.hand_overs)
        yield CounterMetricFamily("headway_kv_hand_over_seconds", "Time from prefill to them.", totals.hand_over_s)
        yield CounterMetricFamily("headway_kv_late_hand_overs", "Those past the lease.", totals.late_hand_overs)
        yield GaugeMetricFamily("headway_open_requests", "Requests under way.", len(self.gateway.calls))
        yield GaugeMetricFamily("headway_held_calls", "Calls that wait for KV room.", int(clock["n_held"]))
        yield GaugeMetricFamily("headway_open_workflows", "Workflows under way.", int(clock["open_workflows"]))

    def of_instances(self) -> Iterator[Metric]:
        """A family a column."""
        live = self.gateway.door.live
        for name, (told, column) in INSTANCE_GAUGES.items():
            gauge = GaugeMetricFamily(name, told, labels=["instance"])
            for spec, row in zip(live.fleet.instances, live.world.instances, strict=True):
                gauge.add_metric([spec.name], float(row[column]))
            yield gauge
        for name, (told, column) in INSTANCE_COUNTERS.items():
            counter = CounterMetricFamily(name, told, labels=["instance"])
            for spec, row in zip(live.fleet.instances, live.world.instances, strict=True):
                counter.add_metric([spec.name], float(row[column]))
            yield counter
        age = GaugeMetricFamily("headway_instance_metrics_age_seconds", "Age of its last metrics.", labels=["instance"])
        for i, upstream in self.gateway.upstreams.items():
            seconds = self.gateway.watcher.seen[i].watch.age_s()
            if seconds is not None:
                age.add_metric([upstream.spec.name], seconds)
        yield age
