"""The health manager: the only service that decides."""
