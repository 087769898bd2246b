"""The doctor's look at the rules: which are in force, and whether the file holds those."""

from collections.abc import Callable
from datetime import datetime
from importlib.metadata import entry_points
from pathlib import Path

from gatemesh_ctl.findings import Finding, fault, unknown, warning, well
from gatemesh_ctl.store import Row

FILE_VARIABLE = "GATEMESH_HEALTH_MANAGER_POLICY_FILE"
GROUP = "gatemesh.policy_checks"
"""One function: takes the path of a policy file, returns its version and the fault in it."""

Check = Callable[[Path], tuple[str, str]]


def judge_in_force(row: Row | None, now: datetime) -> Finding:
    """Say which rules decisions go by."""
    if row is None:
        cure = "start the health manager; it tells its rules at its start"
        return fault("policy", "no rules were ever in force here", cure)
    age_s = (now - row["at"]).total_seconds()
    what = f"version {row['policy_version']} is in force, last decided by {age_s:.0f} s ago"
    return well("policy", what, version=row["policy_version"])


def installed_check() -> Check | None:
    """Return what can judge a policy file; None where the health manager is not installed."""
    for point in entry_points(group=GROUP):
        try:
            check: Check = point.load()
        except ImportError:
            continue
        return check
    return None


def judge_file(file: Path | None, in_force: str | None, check: Check | None) -> Finding:
    """Say whether a policy file is valid, and whether it is what is in force."""
    if file is None:
        cure = f"give --policy FILE, or set {FILE_VARIABLE}"
        return unknown("policy file", "none was named", cure)
    if check is None:
        cure = "pip install 'gatemesh[health_manager]' here, or look where the manager runs"
        return unknown("policy file", "what judges it is not installed here", cure)
    version, wrong = check(file)
    if wrong:
        return fault("policy file", wrong, "correct what it names: docs/policy.md")
    if in_force not in (None, version):
        what = f"{file.name} is valid as version {version}, and version {in_force} is in force"
        cure = "the manager reads another file, or does not run; it takes a change within seconds"
        return warning("policy file", what, cure, version=version, in_force=in_force)
    return well("policy file", f"{file.name} is valid, version {version}", version=version)
