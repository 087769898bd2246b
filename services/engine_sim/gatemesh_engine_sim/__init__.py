"""A stand-in engine that emits every kind of garbage on request."""
