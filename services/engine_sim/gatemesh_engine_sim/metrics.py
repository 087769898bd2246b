"""The metrics page, with the names and labels of vLLM."""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

LABELS = ("model_name", "engine")
ENGINE = "0"

SECONDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 640.0, 2_560.0),
)
LONG_SECONDS = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0),
    *(240.0, 480.0, 960.0, 1_920.0, 7_680.0),
)
TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000)

GAUGES = {
    "num_requests_running": "Number of requests in model execution batches.",
    "num_requests_waiting": "Number of requests waiting to be processed.",
    "kv_cache_usage_perc": "KV-cache usage. 1 means 100 percent usage.",
    "engine_sleep_state": "Engine sleep state; awake = 0.",
}
COUNTERS = {
    "prompt_tokens": "Number of prefill tokens processed.",
    "generation_tokens": "Number of generation tokens processed.",
    "num_preemptions": "Cumulative number of preemption from the engine.",
    "prefix_cache_queries": "Prefix cache queries, in terms of number of queried tokens.",
    "prefix_cache_hits": "Prefix cache hits, in terms of number of cached tokens.",
}
HISTOGRAMS: dict[str, tuple[str, tuple[float, ...]]] = {
    "time_to_first_token_seconds": ("Histogram of time to first token in seconds.", SECONDS),
    "inter_token_latency_seconds": ("Histogram of inter-token latency in seconds.", SECONDS),
    "request_time_per_output_token_seconds": ("Time per output token per request.", SECONDS),
    "e2e_request_latency_seconds": ("Histogram of e2e request latency in seconds.", LONG_SECONDS),
    "request_queue_time_seconds": ("Time spent in the waiting phase.", LONG_SECONDS),
    "request_inference_time_seconds": ("Time spent in the running phase.", LONG_SECONDS),
    "request_prefill_time_seconds": ("Time spent in the prefill phase.", LONG_SECONDS),
    "request_decode_time_seconds": ("Time spent in the decode phase.", LONG_SECONDS),
    "request_prompt_tokens": ("Number of prefill tokens processed.", TOKENS),
    "request_generation_tokens": ("Number of generation tokens processed.", TOKENS),
    "request_params_n": ("Histogram of the n request parameter.", (1, 2, 5, 10, 20)),
    "request_params_max_tokens": ("Histogram of the max_tokens parameter.", TOKENS),
}
FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")


@dataclass(frozen=True, slots=True)
class Finished:
    """What is measured of one finished request; times in seconds."""

    finish_reasons: tuple[str, ...]
    prompt_tokens: int
    generation_tokens: int
    max_tokens: int
    queued_s: float
    first_token_s: float
    whole_s: float


class EngineMetrics:
    """Counts requests in a registry of its own."""

    def __init__(self, model: str) -> None:
        self._registry = CollectorRegistry()
        labels = (model, ENGINE)
        self._gauges = {
            name: Gauge(f"vllm:{name}", text, LABELS, registry=self._registry).labels(*labels)
            for name, text in GAUGES.items()
        }
        self._counters = {
            name: Counter(f"vllm:{name}", text, LABELS, registry=self._registry).labels(*labels)
            for name, text in COUNTERS.items()
        }
        self._histograms = {
            name: Histogram(
                f"vllm:{name}", text, LABELS, buckets=buckets, registry=self._registry
            ).labels(*labels)
            for name, (text, buckets) in HISTOGRAMS.items()
        }
        success = Counter(
            "vllm:request_success",
            "Count of successfully processed requests.",
            (*LABELS, "finished_reason"),
            registry=self._registry,
        )
        self._success = {reason: success.labels(*labels, reason) for reason in FINISH_REASONS}

    def observe_load(self, *, running: int, waiting: int, capacity: int) -> None:
        """Set the gauges; the cache is as full as the batch."""
        self._gauges["num_requests_running"].set(running)
        self._gauges["num_requests_waiting"].set(waiting)
        self._gauges["kv_cache_usage_perc"].set(min(1.0, running / capacity))

    def count(self, done: Finished) -> None:
        """Count a request that ended by itself; aborted ones are missing, as in vLLM."""
        for reason in done.finish_reasons:
            self._success[reason].inc()
        self._counters["prompt_tokens"].inc(done.prompt_tokens)
        self._counters["prefix_cache_queries"].inc(done.prompt_tokens)
        self._counters["generation_tokens"].inc(done.generation_tokens)
        for name, value in _observed(done).items():
            self._histograms[name].observe(value)

    def page(self) -> bytes:
        """The text that `/metrics` serves."""
        return generate_latest(self._registry)


def _observed(done: Finished) -> dict[str, float]:
    decode_s = done.whole_s - done.first_token_s
    per_token_s = decode_s / max(1, done.generation_tokens - 1)
    return {
        "time_to_first_token_seconds": done.first_token_s,
        "inter_token_latency_seconds": per_token_s,
        "request_time_per_output_token_seconds": per_token_s,
        "e2e_request_latency_seconds": done.whole_s,
        "request_queue_time_seconds": done.queued_s,
        "request_inference_time_seconds": done.whole_s - done.queued_s,
        "request_prefill_time_seconds": done.first_token_s - done.queued_s,
        "request_decode_time_seconds": decode_s,
        "request_prompt_tokens": done.prompt_tokens,
        "request_generation_tokens": done.generation_tokens,
        "request_params_n": len(done.finish_reasons),
        "request_params_max_tokens": done.max_tokens,
    }
