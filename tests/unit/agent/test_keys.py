"""A file of keys: read whole or not at all, and a fault names its place."""

import pytest

from gatemesh_agent.keys import KeysUnreadableError, Limits, digest_of, read_keys, written

SUM = digest_of("gm-one").hex()
OTHER = digest_of("gm-two").hex()
DEFAULTS = Limits(60, 1000)


def entry(name: str = "a", sha256: str = SUM, more: str = "") -> str:
    """Return one entry."""
    return f'[[keys]]\nname = "{name}"\nsha256 = "{sha256}"\n{more}\n'


def test_what_an_entry_leaves_out_is_as_for_all() -> None:
    """And 0 takes a limit away."""
    text = entry() + entry("b", OTHER, "requests_per_min = 5\ntokens_per_min = 0")
    found = read_keys(text, DEFAULTS)
    assert found[digest_of("gm-one")].limits == DEFAULTS
    assert found[digest_of("gm-two")].limits == Limits(5, 0)


def test_an_empty_file_lets_nobody_in() -> None:
    """It is a file of no keys."""
    assert read_keys("", DEFAULTS) == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("[[keys]", "no TOML", id="no-toml"),
        pytest.param(entry(sha256="abc"), r"keys\[0\]\.sha256", id="short-hash"),
        pytest.param(entry() + entry("b c", OTHER), r"keys\[1\]\.name", id="odd-name"),
        pytest.param(
            entry(more="tokens_per_min = -1"), r"keys\[0\]\.tokens_per_min", id="negative"
        ),
        pytest.param(entry(more="rpm = 1"), r"keys\[0\]\.rpm", id="unknown-field"),
        pytest.param(entry() + entry("b"), r"keys\[1\]: .*twice", id="same-key"),
        pytest.param(entry() + entry("a", OTHER), r"keys\[1\]: .*twice", id="same-name"),
        pytest.param("key = 1", "key: ", id="another-table"),
    ],
)
def test_a_fault_names_its_place(text: str, told: str) -> None:
    """And repeats no hash."""
    with pytest.raises(KeysUnreadableError, match=told) as caught:
        read_keys(text, DEFAULTS)
    assert SUM not in str(caught.value)


def test_what_is_written_is_read() -> None:
    """The command and the agent agree."""
    text = written("team-a", digest_of("gm-one"), {"requests_per_min": 7})
    [key] = read_keys(text, Limits()).values()
    assert (key.name, key.limits) == ("team-a", Limits(7, 0))
