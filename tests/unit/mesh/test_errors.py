"""Every failure says what is wrong and what to do."""

from gatemesh_mesh.errors import AlreadyRunningError, MeshError


def test_the_text_holds_reason_and_cure() -> None:
    """A person reads both."""
    assert str(MeshError("disk full", "free some")) == "disk full\n  what to do: free some"


def test_the_holder_is_named_when_known() -> None:
    """A person can look at the process that is in the way."""
    assert "process 7" in str(AlreadyRunningError(7, "/s"))
    assert "another process" in str(AlreadyRunningError(None, "/s"))
