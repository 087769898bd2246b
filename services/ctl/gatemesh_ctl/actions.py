"""What operators may ask for, by name; kept here so that asking for help loads no message."""

ACTIONS = (
    "drain",
    "eject",
    "restart",
    "repair",
    "replace",
    "release",
    "quarantine",
    "pause",
    "resume",
    "reset_brake",
    "set_weight",
    "roll_back",
)
POOL_ACTIONS = ("pause", "resume", "reset_brake")
EITHER_ACTIONS = ("roll_back",)
"""About one instance, or about a whole pool."""
BACKLOG_CHOICES = ("skip", "replay")
