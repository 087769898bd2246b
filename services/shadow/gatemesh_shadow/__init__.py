"""The shadow: compares answers with healthy instances, off every client's path."""
