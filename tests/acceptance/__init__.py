"""The whole stack with simulated engines: one for all files of this folder."""
