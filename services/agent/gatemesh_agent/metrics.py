"""Metrics of the agent."""

from prometheus_client import Counter, Gauge, Histogram

REQUESTS = Counter(
    "gatemesh_agent_requests_total", "Client requests that ended.", ["route", "status"]
)
IN_FLIGHT = Gauge("gatemesh_agent_in_flight", "Client requests under way.")
FIRST_BYTE_SECONDS = Histogram(
    "gatemesh_agent_first_byte_seconds",
    "Time from a client's request to the engine's first byte.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)
JUDGED = Counter(
    "gatemesh_agent_judged_total", "Choices that a gate judged.", ["gate", "outcome", "reason"]
)
TOKENS = Counter(
    "gatemesh_agent_tokens_total",
    "Tokens of guarded answers; told with each telemetry window.",
)
GATE_SECONDS = Histogram(
    "gatemesh_agent_gate_seconds",
    "Time that reading and judging one guarded answer took, all gates and tokens together.",
    buckets=(0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3),
)
PLUGGED_SECONDS = Histogram(
    "gatemesh_agent_plugged_seconds",
    "Time that a plugged-in gate took of one choice, all of it together.",
    ["gate"],
    buckets=(0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3),
)
PLUGGED_FAULTS = Counter(
    "gatemesh_agent_plugged_faults_total",
    "Choices for which a plugged-in gate was switched off because it raised.",
    ["gate", "error"],
)
FLAGGED = Counter(
    "gatemesh_agent_flagged_total",
    "Requests and answers that a plugged-in gate kept from going on, in shield mode.",
    ["gate", "stage"],
)
PLUGIN_LINES = Counter(
    "gatemesh_agent_plugin_lines_total",
    "Lines of figures from engines' plugins, by whether they were about a request of this agent.",
    ["known"],
)
PLUGIN_SILENT = Counter(
    "gatemesh_agent_plugin_silent_total",
    "Answers for which figures were asked and none came: no plugin, or it cannot reach the agent.",
    ["instance_id"],
)
UNGUARDED = Counter(
    "gatemesh_agent_unguarded_total", "Answers that no gate looked at, by why.", ["why"]
)
REJECTED = Counter(
    "gatemesh_agent_rejected_total",
    "Requests that an instance or the pool refused.",
    ["cause", "rerouted"],
)
CLIENTS_GONE = Counter(
    "gatemesh_agent_clients_gone_total", "Clients that left before their answer ended."
)
STREAMS_BROKEN = Counter(
    "gatemesh_agent_streams_broken_total", "Streams that an engine broke after the first byte."
)
ROUTING_VERSION = Gauge("gatemesh_agent_routing_version", "Version of the routing table in use.")
IN_ROTATION = Gauge("gatemesh_agent_in_rotation", "Instances that get new client requests.")
PROBES = Counter("gatemesh_agent_probes_total", "Probe suites that ended.", ["purpose", "outcome"])
SPOOL_DEPTH = Gauge("gatemesh_agent_spool_depth", "Messages that wait for the broker.")
SPOOL_AGE_SECONDS = Gauge(
    "gatemesh_agent_spool_age_seconds",
    "Age of the oldest message of the batch that is to go next; 0 when none waits.",
)
SPOOL_DROPPED = Counter(
    "gatemesh_agent_spool_dropped_total", "Messages that no longer fitted.", ["type"]
)
SPOOL_REFUSED = Counter(
    "gatemesh_agent_spool_refused_total",
    "Sends that the broker refused; the messages are kept and tried again.",
    ["error"],
)
SPOOL_FAULTS = Counter("gatemesh_agent_spool_faults_total", "Messages that the disk refused.")
ATTRIBUTED = Counter(
    "gatemesh_agent_attributed_total",
    "Failures by whose fault they are, and how that was found out.",
    ["attribution", "how"],
)
ATTRIBUTION_SECONDS = Histogram(
    "gatemesh_agent_attribution_seconds",
    "Time for which a verdict was withheld for a second opinion.",
    buckets=(0.001, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 3, 10),
)
SECOND_TRIES = Counter(
    "gatemesh_agent_second_tries_total", "Second tries off the client's path.", ["outcome"]
)
UNFIT = Counter(
    "gatemesh_agent_unfit_total",
    "Bad answers in shield mode, by what became of them.",
    ["fate"],
)
SAMPLED = Counter("gatemesh_agent_sampled_total", "Answers chosen for the shadow.", ["cause"])
SAMPLES_DROPPED = Counter(
    "gatemesh_agent_samples_dropped_total", "Chosen answers that did not go, by why.", ["why"]
)
STALL_CHECKS = Counter(
    "gatemesh_agent_stall_checks_total", "Looks at quiet instances, by what they found.", ["found"]
)
RESCUES = Counter(
    "gatemesh_agent_rescues_total",
    "Streams that an instance did not end as they should, by why and by what became of them: "
    "continued, failed_again, refused, passed.",
    ["cause", "outcome"],
)
RESCUES_REFUSED = Counter(
    "gatemesh_agent_rescues_refused_total",
    "Streams that were not continued elsewhere, by why.",
    ["why"],
)
MOVED = Counter(
    "gatemesh_agent_moved_total",
    "Requests that an instance failed before their first token, by why (busy, error, torn, silent, "
    "stalled) and by whether another was asked (moved) or the error went to the client (passed).",
    ["cause", "outcome"],
)
CONTINUATIONS = Counter(
    "gatemesh_agent_continuations_total",
    "Parts of streams that another instance began to write: by ids, text, or as a restart.",
    ["how"],
)
HOLDS = Counter(
    "gatemesh_agent_holds_total",
    "Times that events were held back in doubt, by how that ended: cleared, tokens, time, ended "
    "(all of these went to the client), dropped.",
    ["outcome"],
)
HELD_SECONDS = Histogram(
    "gatemesh_agent_held_seconds",
    "Time for which events were held back in doubt.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 3, 10),
)
HELD_TOKENS = Counter("gatemesh_agent_held_tokens_total", "Tokens that were held back in doubt.")
LEAKED_TOKENS = Counter(
    "gatemesh_agent_leaked_tokens_total",
    "Tokens proven bad that a client had got before, in streams that were rescued.",
)
TURNED_AWAY = Counter(
    "gatemesh_agent_turned_away_total",
    "Requests that were not let in: no_key, unknown_key, requests, tokens, path.",
    ["why"],
)
KEY_TOKENS = Counter(
    "gatemesh_agent_key_tokens_total", "Tokens used by a key that has a limit of them.", ["key"]
)
KEYS = Gauge("gatemesh_agent_keys", "API keys that are let in.")
KEYS_INVALID = Gauge(
    "gatemesh_agent_keys_invalid", "1 while the file of keys is at fault and older keys hold."
)

# Alerts on a first one need the zero before it.
REJECTED.labels(cause="no_instance", rerouted=False)
for _type in ("Verdict", "RequestRejected", "TelemetryWindow"):
    SPOOL_DROPPED.labels(type=_type)
CAPTURED = Counter(
    "gatemesh_agent_captures_total", "Windows around a fault that were taken.", ["check_level"]
)
CAPTURES_DROPPED = Counter(
    "gatemesh_agent_captures_dropped_total", "Failures that were not captured, by why.", ["why"]
)
