"""The closed list of reasons."""

from gatemesh_common.messages import Reason as AsTravelling
from gatemesh_common.reasons import Reason


def test_a_reason_is_its_own_word() -> None:
    """What is stored and queried is what the code says."""
    assert all(reason.value == reason.name.lower() for reason in Reason)


def test_the_reasons_of_the_first_release_stay() -> None:
    """A word that was published is never taken back."""
    first = {"clean", "reported", "control_chars", "replacement_chars", "repetition", "empty"}
    hard = {"nan_logits", "flat_distribution", "wrong_choice", "collapse", "probes_failed"}
    assert first | hard <= {reason.value for reason in Reason}


def test_messages_hand_the_list_on() -> None:
    """Readers need one import."""
    assert AsTravelling is Reason
