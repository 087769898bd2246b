"""The policy file while the manager runs: a change is noticed, judged once, and told."""

from dataclasses import dataclass
from pathlib import Path

from gatemesh_health_manager.policy import Policy, PolicyError, parse_policy, read_policy
from gatemesh_health_manager.telling import tell_policy_fault


@dataclass(frozen=True)
class Content:
    """What one look found: a text, or why there is none."""

    text: str = ""
    fault: str = ""


class PolicyFile:
    """Looks at the file again and again; a fault in it is told once.

    A content counts once two looks in a row have found it: a file that is just being written is
    often empty for a moment, and an empty one is a valid policy.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: Content | None = None
        self._judged: Content | None = None
        self._rules: Policy | None = None

    def look(self) -> Policy | None:
        """Return the rules that the file holds; None while it holds none that can be used."""
        content = self._read()
        settled, self._last = content == self._last, content
        if not settled:
            return None
        if content != self._judged:
            self._judged, self._rules = content, self._judge(content)
        return self._rules

    def _read(self) -> Content:
        try:
            return Content(text=read_policy(self._path))
        except PolicyError as error:
            return Content(fault=str(error))

    def _judge(self, content: Content) -> Policy | None:
        rules, fault = None, content.fault
        if not fault:
            try:
                rules = parse_policy(content.text, self._path.name)
            except PolicyError as error:
                fault = str(error)
        tell_policy_fault(fault or None)
        return rules
