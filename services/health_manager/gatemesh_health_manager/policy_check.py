"""Judging a policy file for `gatemesh-ctl doctor`, which may know nothing of rules."""

from pathlib import Path

from gatemesh_health_manager.policy import PolicyError, load_policy


def check_policy(file: Path) -> tuple[str, str]:
    """Return the version of a file's rules, and what is wrong with it; one is empty."""
    try:
        return load_policy(file).version, ""
    except PolicyError as error:
        return "", str(error)
