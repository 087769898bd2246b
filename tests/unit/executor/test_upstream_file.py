"""The text of an nginx upstream file."""

from hypothesis import given
from hypothesis import strategies as st

from gatemesh_executor.balancers.upstream_file import servers_of, with_servers

TEXT = """\
# engines
  server 127.0.0.1:8000 weight=100 max_fails=3;  # first
server 127.0.0.1:8001 down max_fails=0;
\tserver [::1]:8002;
# server 127.0.0.1:8003;
upstream_server 127.0.0.1:8004;
"""


def test_servers_are_read_with_their_treatment() -> None:
    """A comment is none, and the weight is 1 where none is set."""
    assert servers_of(TEXT) == {
        "127.0.0.1:8000": (False, 100),
        "127.0.0.1:8001": (True, 1),
        "[::1]:8002": (False, 1),
    }


def test_only_weight_and_down_of_the_named_change() -> None:
    """All else of the line and of the file is the operator's."""
    text = with_servers(TEXT, {"127.0.0.1:8000": (True, 30), "127.0.0.1:8001": (False, 50)})
    assert text.splitlines()[1] == "  server 127.0.0.1:8000 max_fails=3 weight=30 down;  # first"
    assert text.splitlines()[2] == "server 127.0.0.1:8001 max_fails=0 weight=50;"
    assert text.splitlines()[3:] == TEXT.splitlines()[3:]
    assert with_servers(TEXT, {"127.0.0.1:9": (True, 1)}) == TEXT


@given(
    text=st.lists(st.sampled_from([*TEXT.splitlines(), "", "server", "server ;", ";"])).map(
        "\n".join
    ),
    down=st.booleans(),
    weight=st.integers(1, 65_535),
)
def test_what_was_written_is_read_back(text: str, down: bool, weight: int) -> None:  # noqa: FBT001
    """Writing it twice changes nothing, and the other servers keep theirs."""
    before = servers_of(text)
    wanted = {"127.0.0.1:8001": (down, weight)}
    after = with_servers(text, wanted)
    assert with_servers(after, wanted) == after
    expected = {name: wanted.get(name, found) for name, found in before.items()}
    assert servers_of(after) == expected
