"""Tokens are known by their hash, and a wrong line is told without its text."""

from pathlib import Path

import pytest

from gatemesh_common.errors import SettingsError
from gatemesh_console.__main__ import read_tokens
from gatemesh_console.settings import ConsoleSettings
from gatemesh_console.tokens import Person, Role, digest_of, make_token, parse_tokens, token_line

from .conftest import DATABASE

LINES = f"# who\n\nann operator {digest_of('a')}; bob viewer {digest_of('b').upper()}"


def test_a_token_names_its_person() -> None:
    """Each has a name of its own in the history of requests."""
    tokens = parse_tokens(LINES)
    assert tokens.person("a") == Person("ann", Role.OPERATOR)
    assert tokens.person("b") == Person("bob", Role.VIEWER)


@pytest.mark.parametrize("token", ["", "c", "A", "a ", digest_of("a"), "ä"])
def test_another_token_names_nobody(token: str) -> None:
    """The hash itself is no token either."""
    assert parse_tokens(LINES).person(token) is None


def test_only_an_operator_may_act() -> None:
    """A viewer looks."""
    assert Person("ann", Role.OPERATOR).may_act
    assert not Person("bob", Role.VIEWER).may_act


@pytest.mark.parametrize(
    "line",
    ["secret", "ann operator secret", f"ann admin {digest_of('a')}", f"operator {digest_of('a')}"],
)
def test_a_wrong_line_is_named_and_not_repeated(line: str) -> None:
    """It may hold a token that somebody put there by mistake."""
    with pytest.raises(SettingsError, match="line 2") as caught:
        parse_tokens(f"# a\n{line}")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("text", ["", " ; \n", "# nobody"])
def test_nobody_is_an_error(text: str) -> None:
    """A console that lets nobody in says so at its start."""
    with pytest.raises(SettingsError, match="names nobody"):
        parse_tokens(text)


def test_a_made_token_is_long_and_its_line_is_read_back() -> None:
    """What the command prints is what the setting takes."""
    token = make_token()
    assert len(token) >= 43
    assert make_token() != token
    line = token_line("ann", Role.VIEWER, token)
    assert token not in line
    assert parse_tokens(line).person(token) == Person("ann", Role.VIEWER)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """By name, before anything listens."""
    path = tmp_path / "tokens.txt"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="GATEMESH_CONSOLE_TOKENS_FILE: must be UTF-8"):
        read_tokens(ConsoleSettings(tokens_file=path, database_url=DATABASE))
