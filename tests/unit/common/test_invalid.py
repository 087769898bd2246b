"""Bad input is explained alike everywhere: the field, and what it must be."""

import pytest
from pydantic import BaseModel, Field, ValidationError, model_validator

from gatemesh_common.invalid import misfits_of, place_words, places_in, words_of


class Key(BaseModel):
    """An entry of a list."""

    digest: str = Field(max_length=4)


class Keys(BaseModel):
    """A file."""

    keys: list[Key]
    most: int = 10
    least: int = 0

    @model_validator(mode="after")
    def are_in_order(self) -> "Keys":
        """Check two fields together."""
        if self.least > self.most:
            raise ValueError("least: must not be above most")
        return self


def refused(**fields: object) -> ValidationError:
    """Return why fields are no file."""
    with pytest.raises(ValidationError) as caught:
        Keys.model_validate(fields)
    return caught.value


def test_each_field_is_named_where_it_stands() -> None:
    """A person looks for it in a file."""
    error = refused(keys=[{"digest": "a"}, {"digest": "secret"}], most="many")
    assert words_of(error) == (
        "keys[1].digest: String should have at most 4 characters; "
        "most: Input should be a valid integer, unable to parse string as an integer"
    )
    assert places_in(error) == [("keys", 1, "digest"), ("most",)]


def test_our_own_words_are_left_as_they_are() -> None:
    """A fault of several fields has no place of its own."""
    error = refused(keys=[], most=1, least=2)
    assert misfits_of(error) == [((), "least: must not be above most")]
    assert words_of(error) == "least: must not be above most"


def test_values_are_not_repeated() -> None:
    """They may be passwords or people's words."""
    assert "secret" not in words_of(refused(keys=[{"digest": "secret"}]))


@pytest.mark.parametrize(
    ("place", "words"),
    [
        pytest.param((), "", id="nowhere"),
        pytest.param(("a",), "a", id="field"),
        pytest.param(("a", 0, "b", "c"), "a[0].b.c", id="within"),
        pytest.param((3, "b"), "[3].b", id="list"),
    ],
)
def test_places(place: tuple[int | str, ...], words: str) -> None:
    """As one would write them."""
    assert place_words(place) == words
