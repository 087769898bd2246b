"""The dashboard of engines."""

from deploy.grafana.panel import EVERY, Dashboard, Panel, Query, quantiles, rate, share

ENGINE = Dashboard(
    "engine",
    "What the engines say of themselves, by the names of vLLM.",
    (
        Panel(
            "Load",
            "Requests running",
            "In execution batches.",
            (Query("sum by (instance_id) (vllm:num_requests_running)", "{{instance_id}}"),),
        ),
        Panel(
            "Load",
            "Requests waiting",
            "In the engine's own queue.",
            (Query("sum by (instance_id) (vllm:num_requests_waiting)", "{{instance_id}}"),),
        ),
        Panel(
            "Load",
            "Tokens written",
            "Per second.",
            (rate("vllm:generation_tokens_total", "instance_id"),),
        ),
        Panel(
            "Load",
            "Prompt tokens",
            "Per second.",
            (rate("vllm:prompt_tokens_total", "instance_id"),),
        ),
        Panel(
            "Latency",
            "Time to the first token",
            "95 in 100.",
            quantiles("vllm:time_to_first_token_seconds", "instance_id", 0.95),
            "s",
        ),
        Panel(
            "Latency",
            "Time between tokens",
            "95 in 100.",
            quantiles("vllm:inter_token_latency_seconds", "instance_id", 0.95),
            "s",
        ),
        Panel(
            "Latency",
            "Whole answers",
            "95 in 100.",
            quantiles("vllm:e2e_request_latency_seconds", "instance_id", 0.95),
            "s",
        ),
        Panel(
            "Latency",
            "Time in the engine's queue",
            "95 in 100.",
            quantiles("vllm:request_queue_time_seconds", "instance_id", 0.95),
            "s",
        ),
        Panel(
            "Cache",
            "KV cache in use",
            "1 is full.",
            (Query("max by (instance_id) (vllm:kv_cache_usage_perc)", "{{instance_id}}"),),
            "percentunit",
        ),
        Panel(
            "Cache",
            "Prefix cache hits",
            "Share of the tokens that were looked for.",
            (
                share(
                    "vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total", "instance_id"
                ),
            ),
            "percentunit",
        ),
        Panel(
            "Cache",
            "Preemptions",
            "Requests that lost their place in the cache, per second.",
            (rate("vllm:num_preemptions_total", "instance_id"),),
        ),
        Panel(
            "Answers",
            "How answers end",
            "A rise of `length` or `abort` is worth a look.",
            (rate("vllm:request_success_total", "finished_reason"),),
        ),
        Panel(
            "Answers",
            "Quiet instances",
            "What agents found when an instance that should write wrote nothing.",
            (rate("gatemesh_agent_stall_checks_total", "found"),),
        ),
        Panel(
            "Answers",
            "Figures from the plugin",
            "Lines that reached agents, and answers for which none came.",
            (
                rate("gatemesh_agent_plugin_lines_total", "known"),
                Query(
                    f"sum by (instance_id) (rate(gatemesh_agent_plugin_silent_total[{EVERY}]))",
                    "silent {{instance_id}}",
                ),
            ),
        ),
    ),
)
