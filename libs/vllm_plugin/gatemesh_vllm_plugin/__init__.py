"""Exact L3 figures from inside vLLM; idle unless GATEMESH_PLUGIN_OUT names a target."""
