"""The metrics page."""

from gatemesh_engine_sim.metrics import COUNTERS, GAUGES, HISTOGRAMS, EngineMetrics, Finished

DONE = Finished(
    finish_reasons=("stop", "length"),
    prompt_tokens=10,
    generation_tokens=5,
    max_tokens=64,
    queued_s=0.1,
    first_token_s=0.3,
    whole_s=0.7,
)
LABELS = '{engine="0",model_name="sim"}'


def page(metrics: EngineMetrics) -> str:
    """The page as text."""
    return metrics.page().decode()


def test_all_names_are_there_before_any_request() -> None:
    """With vLLM's prefix and labels."""
    text = page(EngineMetrics("sim"))
    for name in GAUGES:
        assert f"vllm:{name}{LABELS} 0.0" in text
    for name in COUNTERS:
        assert f"vllm:{name}_total{LABELS} 0.0" in text
    for name in HISTOGRAMS:
        assert f"vllm:{name}_count{LABELS} 0.0" in text


def test_finished_requests_are_counted() -> None:
    """Tokens, reasons per choice, and times."""
    metrics = EngineMetrics("sim")
    metrics.count(DONE)
    text = page(metrics)
    assert f"vllm:prompt_tokens_total{LABELS} 10.0" in text
    assert f"vllm:generation_tokens_total{LABELS} 5.0" in text
    reason = 'vllm:request_success_total{engine="0",finished_reason="%s",model_name="sim"} %.1f'
    assert reason % ("stop", 1) in text
    assert reason % ("length", 1) in text
    assert reason % ("abort", 0) in text
    assert f"vllm:time_to_first_token_seconds_sum{LABELS} 0.3" in text
    assert f"vllm:inter_token_latency_seconds_count{LABELS} 1.0" in text


def test_load_is_shown() -> None:
    """The cache is full with the batch."""
    metrics = EngineMetrics("sim")
    metrics.observe_load(running=3, waiting=2, capacity=4)
    text = page(metrics)
    assert f"vllm:num_requests_running{LABELS} 3.0" in text
    assert f"vllm:num_requests_waiting{LABELS} 2.0" in text
    assert f"vllm:kv_cache_usage_perc{LABELS} 0.75" in text


def test_two_engines_in_one_process_do_not_share() -> None:
    """Each has its own registry."""
    first, second = EngineMetrics("sim"), EngineMetrics("sim")
    first.count(DONE)
    assert f"vllm:prompt_tokens_total{LABELS} 0.0" in page(second)
