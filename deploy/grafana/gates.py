"""The dashboard of traffic, gates and shadow."""

from deploy.grafana.panel import Dashboard, Panel, Query, quantiles, rate, share

JUDGED = 'gatemesh_agent_judged_total{outcome=~"passed|failed"}'

GATES = Dashboard(
    "gates",
    "What passes through the agents, what gates make of it, and what that costs.",
    (
        Panel(
            "Traffic",
            "Requests",
            "Client requests that ended, by status.",
            (rate("gatemesh_agent_requests_total", "status"),),
            "reqps",
            stacked=True,
        ),
        Panel(
            "Traffic",
            "Time to the first byte",
            "From the client's request to the engine's first byte.",
            quantiles("gatemesh_agent_first_byte_seconds"),
            "s",
        ),
        Panel(
            "Traffic",
            "Tokens",
            "Of guarded answers.",
            (rate("gatemesh_agent_tokens_total"),),
            "short",
        ),
        Panel(
            "Traffic",
            "Refused, broken, gone",
            "Requests that instances refused, streams that engines broke, clients that left.",
            (
                rate("gatemesh_agent_rejected_total", "cause"),
                Query(rate("gatemesh_agent_streams_broken_total").expression, "broken stream"),
                Query(rate("gatemesh_agent_clients_gone_total").expression, "client gone"),
            ),
        ),
        Panel(
            "Traffic",
            "Rescued streams",
            "That turned bad, broke off or halted, by what became of them.",
            (rate("gatemesh_agent_rescues_total", "cause, outcome"),),
        ),
        Panel(
            "Traffic",
            "Answered elsewhere",
            "What an instance failed before its first token, by why; passed: to the client.",
            (rate("gatemesh_agent_moved_total", "cause, outcome"),),
        ),
        Panel(
            "Traffic",
            "Held in doubt",
            "Times that a stream was held back, by how that ended; dropped never reached a client.",
            (rate("gatemesh_agent_holds_total", "outcome"),),
        ),
        Panel(
            "Gates",
            "Failed answers",
            "Share of what each gate judged.",
            (share('gatemesh_agent_judged_total{outcome="failed"}', JUDGED, "gate"),),
            "percentunit",
        ),
        Panel(
            "Gates",
            "Why answers fail",
            "Per second, by gate and reason.",
            (rate("gatemesh_agent_judged_total", "gate, reason", 'outcome="failed"'),),
        ),
        Panel(
            "Gates",
            "Why gates cannot judge",
            "A skip is no pass.",
            (rate("gatemesh_agent_judged_total", "gate, reason", 'outcome="skipped"'),),
        ),
        Panel(
            "Gates",
            "Past the gates",
            "Answers that no gate looked at.",
            (rate("gatemesh_agent_unguarded_total", "why"),),
        ),
        Panel(
            "Gates",
            "Whose fault it is",
            "`request`: another instance answers it no better.",
            (rate("gatemesh_agent_attributed_total", "attribution, how"),),
        ),
        Panel(
            "Gates",
            "Probes",
            "Suites that ended.",
            (rate("gatemesh_agent_probes_total", "purpose, outcome"),),
        ),
        Panel(
            "Cost",
            "Time of the gates for one answer",
            "Reading and judging, all tokens together.",
            quantiles("gatemesh_agent_gate_seconds"),
            "s",
        ),
        Panel(
            "Cost",
            "Plugged-in gates",
            "Time for one choice, and how often one was switched off.",
            (
                *quantiles("gatemesh_agent_plugged_seconds", "gate", 0.95),
                Query(
                    rate("gatemesh_agent_plugged_faults_total", "gate").expression, "off {{gate}}"
                ),
            ),
            "s",
        ),
        Panel(
            "Shadow",
            "Pairs judged",
            "Answers put to another instance, by measure and outcome.",
            (rate("gatemesh_shadow_verdicts_total", "measure, outcome"),),
        ),
        Panel(
            "Shadow",
            "Lag",
            "Age of a sample when its verdict was published.",
            quantiles("gatemesh_shadow_lag_seconds"),
            "s",
        ),
        Panel(
            "Shadow",
            "Samples",
            "Chosen by agents, taken by the shadow, left out by either.",
            (
                Query(rate("gatemesh_agent_sampled_total").expression, "chosen"),
                Query(rate("gatemesh_shadow_samples_total").expression, "taken"),
                Query(
                    rate("gatemesh_agent_samples_dropped_total", "why").expression, "agent: {{why}}"
                ),
                Query(rate("gatemesh_shadow_dropped_total", "why").expression, "shadow: {{why}}"),
            ),
        ),
        Panel(
            "Shadow",
            "Requests of its own",
            "Time that other instances take for them.",
            quantiles("gatemesh_shadow_replica_seconds", "purpose", 0.95),
            "s",
        ),
    ),
)
