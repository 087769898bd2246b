"""Metrics of the health manager."""

from prometheus_client import Counter, Gauge, Histogram

VERDICTS = Counter(
    "gatemesh_verdicts_total", "Verdicts stored, by gate and outcome.", ["check_level", "outcome"]
)
TRANSITIONS = Counter(
    "gatemesh_transitions_total", "Steps in the state table, by trigger.", ["pool", "trigger"]
)
INCIDENTS = Counter(
    "gatemesh_incidents_total",
    "Incidents that opened, changed or ended, by condition and status.",
    ["pool", "condition", "status"],
)
COMMANDS = Counter("gatemesh_commands_total", "Commands ordered, by action.", ["pool", "action"])
INSTANCES = Gauge(
    "gatemesh_instances", "Instances by state, as the ticking manager sees them.", ["pool", "state"]
)
BRAKED = Gauge(
    "gatemesh_fleet_brake", "1 while it is on, as the ticking manager sees it.", ["pool"]
)
OBSERVED = Gauge(
    "gatemesh_observe_mode",
    "1 while its incidents are only told, as the ticking manager sees it.",
    ["pool"],
)
OBSERVED_INCIDENTS = Counter(
    "gatemesh_observed_incidents_total",
    "Incidents that ended without anything having been done, by condition; observe mode.",
    ["pool", "condition"],
)
INCIDENTS_OPEN = Gauge(
    "gatemesh_incidents_open",
    "Incidents that have not ended, by status, as the ticking manager sees them.",
    ["pool", "status"],
)
ROTATION_SHARE = Gauge(
    "gatemesh_rotation_share",
    "Share of the pool's instances that get clients' requests, as the ticking manager sees it.",
    ["pool"],
)
PAUSED = Gauge(
    "gatemesh_pool_paused",
    "1 while an operator has paused it, as the ticking manager sees it.",
    ["pool"],
)
COMMAND_OUTCOMES = Counter(
    "gatemesh_commands_ended_total",
    "Commands that ended, by outcome; `expired` means that no report came in time.",
    ["pool", "outcome"],
)
VERDICT_DELAY_SECONDS = Histogram(
    "gatemesh_verdict_delay_seconds",
    "Time from the moment that a verdict names to the commit that stored and weighed it.",
    buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 300, 3600),
)
LEADS = Gauge(
    "gatemesh_ticker_leads", "1 in the one manager that looks at deadlines, 0 in the others."
)
TICK_SECONDS = Histogram(
    "gatemesh_tick_seconds",
    "Time that one look at every deadline took.",
    buckets=(0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10),
)
POLICY = Gauge("gatemesh_policy_info", "1 for the version of the rules in force.", ["version"])
POLICY_INVALID = Gauge(
    "gatemesh_policy_invalid", "1 while the policy file cannot be used and older rules stay."
)
