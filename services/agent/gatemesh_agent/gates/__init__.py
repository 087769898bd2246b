"""Correctness gates: pure, incremental judges of one response."""
