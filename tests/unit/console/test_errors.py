"""A fault of the input names its field and the way out."""

from gatemesh_console.errors import BadInputError


def test_a_fault_tells_field_and_cure() -> None:
    """In one line, and apart."""
    fault = BadInputError("weight", "give 0 to 1")
    assert str(fault) == "weight: give 0 to 1"
    assert (fault.field, fault.cure) == ("weight", "give 0 to 1")
    assert not fault.retryable
