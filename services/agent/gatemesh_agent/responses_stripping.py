"""Takes added log probabilities out of `/v1/responses`, byte for byte. Pure.

Without them a delta carries an empty list, every other part `null`, and the response itself says
`"top_logprobs":null`. Source: vLLM 0.32.0, compared with a real engine.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from gatemesh_agent.stripping import (
    LogprobsCut,
    Parted,
    as_object,
    loads,
    replaced,
    value_end,
)

KEY = re.compile(rb'"logprobs"\s*:\s*(?=\[)')
COUNT = re.compile(rb'"top_logprobs"\s*:\s*(?=\d)')
DIGITS = re.compile(rb"\d+")
LIST_END = b"]}]"
"""Ends every list of log probabilities that vLLM writes; a guess that is checked."""
DELTA = "response.output_text.delta"
LONG_KEY = re.compile(rb'"logprobs"\s*:\s*(?=\[[^\]])|"top_logprobs"\s*:\s*(?=\d+[,}])')
"""Lists that are not empty, and the count."""


class Place(NamedTuple):
    """Where log probabilities, or their count, may stand."""

    holder: dict[str, Any]
    key: str
    bare: bytes
    """What stands there when none were asked."""


class Found(NamedTuple):
    """One value in the raw bytes."""

    begin: int
    end: int
    value: Any


def part(data: bytes, start: int = 0) -> Parted:
    """Take the log probabilities out of the JSON that begins at `start`.

    Raises:
        ValueError: it is no JSON object, or not UTF-8.
    """
    spans = sorted([*lists_in(data, start), *counts_in(data, start)])
    if not spans:
        return Parted(data, as_object(loads(data[start:])), 0)
    marked = replaced(data, spans, [b"%d" % number for number in range(len(spans))])
    fields = as_object(loads(marked[start:]))
    places = list(places_in(fields))
    # A key of that name elsewhere, as in a tool's schema, would be a client's own.
    if [place.holder.get(place.key) for place in places] != list(range(len(spans))):
        return part_by_value(data, start)
    for place, span in zip(places, spans, strict=True):
        place.holder[place.key] = span.value
    bare = [
        place.bare if span.value != [] else b"[]" for place, span in zip(places, spans, strict=True)
    ]
    return Parted(replaced(data, spans, bare), fields, len(spans))


def lists_in(data: bytes, start: int) -> Iterator[Found]:
    """Yield every list under a key `logprobs`.

    Raises:
        ValueError: one is no JSON.
    """
    match = KEY.search(data, start)
    while match:
        end, value = read_list(data, match.end())
        yield Found(match.end(), end, value)
        match = KEY.search(data, end)


def counts_in(data: bytes, start: int) -> Iterator[Found]:
    """Yield every number under a key `top_logprobs`."""
    for match in COUNT.finditer(data, start):
        digits = DIGITS.match(data, match.end())
        if digits:
            yield Found(digits.start(), digits.end(), int(digits[0]))


def read_list(data: bytes, begin: int) -> tuple[int, Any]:
    """Return the end of the list that begins there, and the list.

    Raises:
        ValueError: it does not end, or is no JSON.
    """
    if data[begin + 1 : begin + 2] == b"]":
        return begin + 2, []
    guess = data.find(LIST_END, begin) + len(LIST_END)
    if guess >= len(LIST_END):
        try:
            return guess, orjson.loads(data[begin:guess])
        except orjson.JSONDecodeError:
            pass
    end = value_end(data, begin)
    return end, loads(data[begin:end])


def places_in(fields: dict[str, Any]) -> Iterator[Place]:
    """Yield where an answer or event may carry log probabilities, in the order of its bytes."""
    for key, value in fields.items():
        if key == "logprobs":
            if value is not None:
                yield Place(fields, key, b"[]" if fields.get("type") == DELTA else b"null")
        elif key == "top_logprobs":
            if value is not None:
                yield Place(fields, key, b"null")
        elif key in NESTED:
            yield from nested_places(value)


NESTED = ("response", "output", "item", "content", "part")
"""The way from an event down to a part of its output."""


def nested_places(value: object) -> Iterator[Place]:
    """Yield the places within an object or a list of objects."""
    for one in value if isinstance(value, list) else (value,):
        if isinstance(one, dict):
            yield from places_in(one)


def part_by_value(data: bytes, start: int) -> Parted:
    """Part an answer of unusual build by parsing all of it and writing it anew, compactly."""
    fields = as_object(loads(data[start:]))
    bare = as_object(loads(data[start:]))
    places = [place for place in places_in(bare) if place.holder[place.key] != []]
    for place in places:
        place.holder[place.key] = orjson.loads(place.bare)
    written = json.dumps(bare, ensure_ascii=False, separators=(",", ":"))
    tail = data[len(data.rstrip()) :]
    return Parted(
        data[:start] + written.encode("utf-8", "surrogatepass") + tail, fields, len(places)
    )


class ListsCut(LogprobsCut):
    """Takes them out of an answer or event of any length, in bounded memory."""

    def __init__(self) -> None:
        super().__init__(LONG_KEY)

    def _copy(self, pieces: list[bytes]) -> bool:
        copied = super()._copy(pieces)
        if copied and not self._depth:
            # A count: its first digit is dropped with the key, the others are here.
            self._held = self._held.lstrip(b"0123456789")
        return copied
