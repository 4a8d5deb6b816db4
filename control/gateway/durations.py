"""How long requests took, under the names of OpenTelemetry's conventions for generative AI."""

from prometheus_client import CollectorRegistry, Histogram

#: Bounds of those conventions for durations and times to the first token, s.
DURATION_S = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
FIRST_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
LABELS = ("gen_ai_operation_name", "gen_ai_request_model", "error_type")
OPERATIONS = {"/v1/chat/completions": "chat", "/v1/completions": "text_completion"}


class Durations:
    """Histograms of all requests since the start."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.request = Histogram(
            "gen_ai_server_request_duration_seconds",
            "Time from a request's arrival here to its end.",
            LABELS,
            buckets=DURATION_S,
            registry=self.registry,
        )
        self.first = Histogram(
            "gen_ai_server_time_to_first_token_seconds",
            "Time from a request's arrival here to its first token.",
            LABELS[:2],
            buckets=FIRST_S,
            registry=self.registry,
        )

    def note(self, path: str, model: str, error: str, took_s: float, first_s: float | None) -> None:
        """Count a request that ended; `error`: its cause, "" where there is none; `first_s` None: no token came."""
        operation = OPERATIONS.get(path, path)
        self.request.labels(operation, model, error).observe(took_s)
        if first_s is not None:
            self.first.labels(operation, model).observe(first_s)
