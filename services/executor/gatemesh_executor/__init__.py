"""The executor: the only service that acts on engines."""
