"""The rules of captures are checked before agents are told of them."""

import pytest

from gatemesh_common.captures import BUILTIN_RULES, CaptureTerms
from gatemesh_health_manager.policy import PolicyError, parse_policy
from gatemesh_health_manager.policy_capture import CapturePolicy, capture_terms

from .samples import NOW


def test_agents_are_told_what_the_file_says() -> None:
    """Each pool its own."""
    policy = parse_policy(
        """
        [pools.chat.capture]
        text = "window"
        builtin_rules = ["key"]
        rules = [{ name = "customer", pattern = "C-[0-9]+" }]
        per_min = 5
        """
    )
    told = capture_terms("chat", policy.for_pool("chat").capture, NOW)
    assert (told.text, told.builtin_rules, told.per_min) == ("window", ("key",), 5.0)
    assert [(rule.name, rule.pattern) for rule in told.rules] == [("customer", "C-[0-9]+")]
    assert capture_terms("other", policy.for_pool("other").capture, NOW).text == "none"


def test_the_defaults_of_both_sides_are_the_same() -> None:
    """An agent that has heard nothing does what the default policy says."""
    told = capture_terms("chat", CapturePolicy(), NOW)
    silent = CaptureTerms(timestamp=NOW, pool="chat", message_id=told.message_id)
    assert told == silent
    assert told.builtin_rules == BUILTIN_RULES


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('text = "all"', "text"),
        ('builtin_rules = ["iban"]', "builtin_rules"),
        ('rules = [{ name = "broken", pattern = "(" }]', "rule 'broken': no regular expression"),
        ('rules = [{ name = "Not A Name", pattern = "a" }]', "name"),
        ('rules = [{ name = "a", patern = "a" }]', "patern"),
        ("max_bytes = 10", "max_bytes"),
    ],
)
def test_a_fault_is_named_when_the_file_is_read(line: str, fault: str) -> None:
    """Not by an agent that then keeps all text back."""
    with pytest.raises(PolicyError, match="line 2") as raised:
        parse_policy(f"[defaults.capture]\n{line}\n")
    assert fault in str(raised.value)
