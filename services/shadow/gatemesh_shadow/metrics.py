"""Metrics of the shadow."""

from prometheus_client import Counter, Gauge, Histogram

SAMPLES = Counter("gatemesh_shadow_samples_total", "Samples taken from the queue.", ["cause"])
DROPPED = Counter("gatemesh_shadow_dropped_total", "Samples or checks that were left out.", ["why"])
VERDICTS = Counter(
    "gatemesh_shadow_verdicts_total", "Judgements reached.", ["check_level", "measure", "outcome"]
)
SKIPPED = Counter(
    "gatemesh_shadow_skipped_total", "Checks that could not judge.", ["check_level", "reason"]
)
DISPUTED = Counter(
    "gatemesh_shadow_disputed_total", "Failures that a second instance did not bear out."
)
REFERENCE_ROUNDS = Counter(
    "gatemesh_shadow_reference_rounds_total",
    "Questions about how an instance stands to kept answers.",
    ["standing"],
)
REPLICA_FAULTS = Counter(
    "gatemesh_shadow_replica_faults_total", "Own requests that failed.", ["error"]
)
REPLICA_SECONDS = Histogram(
    "gatemesh_shadow_replica_seconds",
    "Time that an instance took for one of our requests.",
    ["purpose"],
    buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60),
)
LAG_SECONDS = Histogram(
    "gatemesh_shadow_lag_seconds",
    "Age of a sample when its verdicts were published.",
    buckets=(0.1, 0.3, 1, 3, 10, 30, 60, 120),
)
CALIBRATED = Gauge(
    "gatemesh_shadow_calibrated", "1 when limits were measured between instances.", ["pool"]
)
MODELS_READY = Gauge("gatemesh_shadow_model_ready", "1 when a model can be used.", ["model"])
CAPTURES = Counter(
    "gatemesh_shadow_captures_total", "Pairs of answers for captures, by outcome.", ["outcome"]
)
