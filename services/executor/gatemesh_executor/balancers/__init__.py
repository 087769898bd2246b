"""Load balancers that route to engine instances."""
