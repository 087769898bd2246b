"""The dashboard of services, broker and delays."""

from deploy.grafana.panel import Dashboard, Panel, Query, quantiles, rate

PIPELINE = Dashboard(
    "pipeline",
    "From the token to the database and back: services, broker, delays.",
    (
        Panel(
            "Services",
            "Up",
            "Scraped with success.",
            (Query('up{job=~"agent|health_manager|executor|shadow|rabbitmq"}', "{{instance}}"),),
            kind="stat",
        ),
        Panel(
            "Services",
            "Lacking",
            "What a service lacks to be ready.",
            (
                Query(
                    "sum by (job, need) (gatemesh_need_missing) > 0 or vector(0)",
                    "{{job}} {{need}}",
                ),
            ),
            kind="stat",
            red_from=1,
        ),
        Panel(
            "Services",
            "Dead letters",
            "In the last hour.",
            (Query("sum(increase(gatemesh_dead_lettered_total[1h]))", "dead letters"),),
            kind="stat",
            red_from=1,
        ),
        Panel(
            "Services",
            "Outbox lag",
            "For how long what was decided has waited.",
            (Query("max(gatemesh_outbox_lag_seconds)", "lag"),),
            "s",
            "stat",
            red_from=10,
        ),
        Panel(
            "Verdicts",
            "Verdicts stored",
            "Per second, by gate and outcome.",
            (rate("gatemesh_verdicts_total", "check_level, outcome"),),
        ),
        Panel(
            "Verdicts",
            "From the moment of a verdict to SQL",
            "What a hand-made one with an old timestamp takes counts, too.",
            quantiles("gatemesh_verdict_delay_seconds", "", 0.5, 0.95, 0.99),
            "s",
        ),
        Panel(
            "Verdicts",
            "Waiting in agents",
            "Age of the oldest message of the next batch.",
            (Query("max by (instance) (gatemesh_agent_spool_age_seconds)", "{{instance}}"),),
            "s",
        ),
        Panel(
            "Verdicts",
            "Messages in agents",
            "In the spool.",
            (Query("sum by (instance) (gatemesh_agent_spool_depth)", "{{instance}}"),),
        ),
        Panel(
            "Broker",
            "Messages that wait in queues",
            "Of each queue, ready to be taken.",
            (
                Query(
                    "sum by (queue) (rabbitmq_detailed_queue_messages_ready)",
                    "{{queue}}",
                ),
            ),
        ),
        Panel(
            "Broker",
            "Age of a message when it is taken",
            "95 in 100; commands wait on purpose after a restart.",
            quantiles("gatemesh_queue_age_seconds", "queue", 0.95),
            "s",
        ),
        Panel(
            "Broker",
            "Taken and not acknowledged; readers",
            "A queue without a reader only grows.",
            (
                Query(
                    "sum by (queue) (rabbitmq_detailed_queue_messages_unacked)",
                    "{{queue}} unacked",
                ),
                Query("sum by (queue) (rabbitmq_detailed_queue_consumers)", "{{queue}} readers"),
            ),
        ),
        Panel(
            "Broker",
            "Confirmations",
            "Time until the broker confirmed, and messages that it did not confirm.",
            (
                *quantiles("gatemesh_publish_seconds", "job", 0.95),
                Query(
                    rate("gatemesh_publish_failures_total", "job, error").expression,
                    "{{job}} {{error}} per s",
                ),
            ),
            "s",
        ),
        Panel(
            "Manager",
            "One look at every deadline",
            "Late, when it takes longer than a second.",
            quantiles("gatemesh_tick_seconds"),
            "s",
        ),
        Panel(
            "Manager",
            "Passing faults",
            "Retried by themselves.",
            (rate("gatemesh_retried_total", "job, error"),),
        ),
        Panel(
            "Processes",
            "Memory",
            "Resident.",
            (Query("sum by (job, instance) (process_resident_memory_bytes)", "{{instance}}"),),
            "bytes",
        ),
        Panel(
            "Processes",
            "Processor",
            "Cores in use.",
            (rate("process_cpu_seconds_total", "instance"),),
        ),
    ),
)
