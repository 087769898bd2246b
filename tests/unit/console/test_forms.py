"""Forms are small and plain."""

import pytest

from gatemesh_console.errors import BadInputError
from gatemesh_console.forms import MOST_BYTES, MOST_FIELDS, parse_form, read_form

from .conftest import OPERATOR, Office


def test_fields_are_read_and_trimmed() -> None:
    """Chinese text arrives whole."""
    assert parse_form(b"a=+x+&b=%E4%BD%A0&c=") == {"a": "x", "b": "你", "c": ""}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"a=%ff", id="no-utf8"),
        pytest.param("a=ü".encode("latin-1"), id="no-ascii"),
        pytest.param("&".join("a=1" for _ in range(MOST_FIELDS + 1)).encode(), id="too-many"),
    ],
)
def test_what_is_no_form_is_told(body: bytes) -> None:
    """The page says what to do."""
    with pytest.raises(BadInputError, match="form: must be"):
        parse_form(body)


async def test_a_form_that_is_too_large_is_refused(office: Office) -> None:
    """A stranger cannot fill the memory."""
    assert read_form.__doc__
    answer = await office.client.post("/sign-in", {"token": OPERATOR, "next": "x" * MOST_BYTES})
    assert answer.status == 400
    assert "larger than" in answer.text
