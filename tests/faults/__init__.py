"""Faults that strike the whole stack with simulated engines: one for all scenarios."""
