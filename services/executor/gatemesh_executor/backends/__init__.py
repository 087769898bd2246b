"""Platforms that run engine instances."""
