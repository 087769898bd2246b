"""The dashboard of instances, incidents and commands."""

from deploy.grafana.panel import Dashboard, Panel, Query, quantiles, rate

IN_POOL = 'pool=~"$pool"'

FLEET = Dashboard(
    "fleet",
    "Where instances stand, what is wrong with them, and what is done about it.",
    (
        Panel(
            "Now",
            "In rotation",
            "Share of each pool that gets clients' requests.",
            (Query(f"gatemesh_rotation_share{{{IN_POOL}}}", "{{pool}}"),),
            "percentunit",
            "stat",
        ),
        Panel(
            "Now",
            "Quarantined",
            "Instances that wait for a person.",
            (Query(f'gatemesh_instances{{state="quarantined", {IN_POOL}}}', "{{pool}}"),),
            kind="stat",
            red_from=1,
        ),
        Panel(
            "Now",
            "Brake, pause, observe mode",
            "1 while it is on: nothing, or less, is done by itself.",
            (
                Query(f"gatemesh_fleet_brake{{{IN_POOL}}}", "{{pool}} brake"),
                Query(f"gatemesh_pool_paused{{{IN_POOL}}}", "{{pool}} pause"),
                Query(f"gatemesh_observe_mode{{{IN_POOL}}}", "{{pool}} observe"),
            ),
            kind="stat",
            red_from=1,
        ),
        Panel(
            "Now",
            "Managers that tick",
            "One, or nothing that waits goes on.",
            (Query("sum(gatemesh_ticker_leads)", "ticking"),),
            kind="stat",
        ),
        Panel(
            "Instances",
            "Instances by state",
            "As the ticking manager sees them.",
            (Query(f"sum by (state) (gatemesh_instances{{{IN_POOL}}}) > 0", "{{state}}"),),
            stacked=True,
        ),
        Panel(
            "Instances",
            "Steps in the state table",
            "Per second, by what made them.",
            (rate("gatemesh_transitions_total", "trigger", IN_POOL),),
        ),
        Panel(
            "Incidents",
            "Open incidents",
            "`held`: recorded, and nothing is done until a brake is off or a budget has room.",
            (
                Query(
                    f"sum by (status) (gatemesh_incidents_open{{{IN_POOL}}})",
                    "{{status}}",
                ),
            ),
        ),
        Panel(
            "Incidents",
            "Incidents by condition",
            "Opened, changed or ended, per second.",
            (rate("gatemesh_incidents_total", "condition, status", IN_POOL),),
        ),
        Panel(
            "Commands",
            "Commands ordered",
            "Per second, by action.",
            (rate("gatemesh_commands_total", "action", IN_POOL),),
        ),
        Panel(
            "Commands",
            "How commands end",
            "`expired`: no report came in time.",
            (rate("gatemesh_commands_ended_total", "outcome", IN_POOL),),
        ),
        Panel(
            "Commands",
            "Time of a command",
            "From its first step to its last, by action.",
            quantiles("gatemesh_executor_command_seconds", "action"),
            "s",
        ),
        Panel(
            "Commands",
            "Time of a step",
            "`ready` is the engine's own start.",
            quantiles("gatemesh_executor_step_seconds", "step", 0.95),
            "s",
        ),
        Panel(
            "Commands",
            "Refused commands",
            "Per second, by reason; unsigned ones are somebody else's.",
            (rate("gatemesh_executor_commands_refused_total", "reason"),),
        ),
        Panel(
            "Commands",
            "Running processes and commands under way",
            "As the executor sees them.",
            (
                Query("sum(gatemesh_executor_instances_running)", "processes"),
                Query("sum(gatemesh_executor_under_way)", "commands"),
            ),
        ),
    ),
    by_pool=True,
)
