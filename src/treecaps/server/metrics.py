"""What a server tells Prometheus."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_PROGRAMS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counts and times of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(ProcessCollector(registry=None))
        self.requests = Counter(
            "treecaps_requests",
            "Requests, by path and status; 499 is a client that hung up.",
            ("path", "status"),
            registry=self._registry,
        )
        self.seconds = Histogram(
            "treecaps_request_seconds",
            "Time from the first byte of a request to the last of its answer.",
            ("path",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.under_way = Gauge(
            "treecaps_requests_under_way", "Requests without an answer.", registry=self._registry
        )
        self.batch = Histogram(
            "treecaps_batch_programs",
            "Programs that the network looked at together.",
            buckets=_PROGRAMS,
            registry=self._registry,
        )
        self.network = Counter(
            "treecaps_network_seconds", "Time in the network.", registry=self._registry
        )

    def to_text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)
