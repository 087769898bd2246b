"""Words for what does not fit a model: names fields, never repeats what was in them. Pure."""

from pydantic import ValidationError

Place = tuple[int | str, ...]
"""Where a field stands: names of fields, and numbers within lists."""
Misfit = tuple[Place, str]
"""A field with what it must be; a fault of several fields together has no place."""
OWN = "Value error, "
"""What pydantic puts before the words of our own checks."""


def misfits_of(error: ValidationError) -> list[Misfit]:
    """Return each field that does not fit."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    return [(one["loc"], one["msg"].removeprefix(OWN)) for one in found]


def places_in(error: ValidationError) -> list[Place]:
    """Return where the fields stand that do not fit."""
    return [place for place, _ in misfits_of(error)]


def place_words(place: Place) -> str:
    """Return `keys[2].sha256` for its parts."""
    words = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return "".join(words).removeprefix(".")


def misfit_words(misfit: Misfit) -> str:
    """Return a field and what it must be."""
    place, message = misfit
    return f"{place_words(place)}: {message}" if place else message


def words_of(error: ValidationError) -> str:
    """Return all that does not fit in one line."""
    return "; ".join(map(misfit_words, misfits_of(error)))
