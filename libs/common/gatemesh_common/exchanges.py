"""The broker's exchanges by name."""

ALERTS = "vllm_health_alert"
SHADOW = "vllm_shadow"
CONTROL = "vllm_control"
EVENTS = "vllm_health_event"
DEAD = "gatemesh.dead"
