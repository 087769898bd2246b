"""Metrics of the executor."""

from prometheus_client import Counter, Gauge, Histogram

from gatemesh_common.signing import Distrust

COMMANDS_ENDED = Counter(
    "gatemesh_executor_commands_total", "Commands that ended.", ["action", "outcome"]
)
COMMANDS_REFUSED = Counter(
    "gatemesh_executor_commands_refused_total", "Commands refused, by reason.", ["reason"]
)
COMMAND_SECONDS = Histogram(
    "gatemesh_executor_command_seconds",
    "Time that a command took from its first step to its last.",
    ["action", "outcome"],
    buckets=(0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800),
)
UNDER_WAY = Gauge(
    "gatemesh_executor_under_way", "Commands being carried out, or waiting for another of theirs."
)
STEP_SECONDS = Histogram(
    "gatemesh_executor_step_seconds",
    "Time that a step of a command took.",
    ["step"],
    buckets=(0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600),
)
INSTANCES_RUNNING = Gauge(
    "gatemesh_executor_instances_running", "Instances with a running process."
)
BACKEND_FAULTS = Counter(
    "gatemesh_executor_backend_faults_total", "Looks at the processes that got no answer."
)
BALANCER_FAULTS = Counter(
    "gatemesh_executor_balancer_faults_total",
    "Times that a load balancer could not be kept to what it should do.",
    ["balancer"],
)
BALANCER_ASSERTED = Counter(
    "gatemesh_executor_balancer_asserted_total",
    "Servers whose state or weight a load balancer was told (again).",
    ["balancer"],
)

# Alerts on a first one need the zero before it.
for _distrust in Distrust:
    COMMANDS_REFUSED.labels(reason=_distrust.value)
