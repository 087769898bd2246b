"""Rescue: a stream that goes bad goes on elsewhere, and its client never sees the garbage."""
