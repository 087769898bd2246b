"""The gate-agent: an OpenAI-compatible reverse proxy that judges what engines emit."""
