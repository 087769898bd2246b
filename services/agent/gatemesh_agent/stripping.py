"""Takes added log probabilities out again, byte for byte: the rest is what the engine wrote. Pure.

A quote inside a JSON string is always escaped, so `"logprobs":` in raw JSON can only be a key.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

KEY = re.compile(rb'"logprobs"\s*:\s*(?=\{)')
LONGEST_KEY_BYTES = 64
"""Of the key with white space around its colon; more white space is not looked for."""

NAME = b'"logprobs"'
OPENED = NAME + b":{"
NULL = b"null"
NEXT_FIELD = b',"finish_reason"'
"""What follows the value in every vLLM answer; a guess that is checked."""

TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]|"')


class Parted(NamedTuple):
    """An answer, or one event of it, apart from the log probabilities in it."""

    rest: bytes
    """The same bytes with `null` for each value."""
    fields: dict[str, Any]
    """The parsed JSON, log probabilities included."""
    found: int
    """How many values were taken out."""


def loads(data: bytes) -> Any:
    """Parse JSON as the engine's own encoder may write it: lone surrogates and NaN too.

    Raises:
        ValueError: it is no JSON, or not UTF-8.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data.decode())


def part(data: bytes, start: int = 0) -> Parted:
    """Take the log probabilities of every choice out of the JSON that begins at `start`.

    Raises:
        ValueError: it is no JSON object, or not UTF-8.
    """
    return part_usual(data, start) or part_any(data, start)


def part_usual(data: bytes, start: int) -> Parted | None:
    """Part an event of one choice as vLLM writes it; None for everything else."""
    begin = data.find(OPENED, start) + len(OPENED) - 1
    end = data.find(NEXT_FIELD, begin)
    if begin < len(OPENED) or end < 0 or data.find(NAME, end) >= 0:
        return None
    rest = b"%b%b%b" % (data[:begin], NULL, data[end:])
    try:
        # Neither is right unless the cut is: the brackets of both must close.
        value, fields = orjson.loads(data[begin:end]), orjson.loads(rest[start:])
        (choice,) = fields["choices"]
        if choice["logprobs"] is not None or rest.count(NAME) != 1:
            return None
        choice["logprobs"] = value
    except (ValueError, TypeError, KeyError):
        return None
    return Parted(rest, fields, 1)


def part_any(data: bytes, start: int) -> Parted:
    """Part an answer of any build.

    Raises:
        ValueError: it is no JSON object, or not UTF-8.
    """
    spans = value_spans(data, start)
    if not spans:
        return Parted(data, as_object(loads(data[start:])), 0)
    values = [value for _, _, value in spans]
    marked = replaced(data, spans, [b"%d" % number for number in range(len(spans))])
    fields = as_object(loads(marked[start:]))
    if not put_back(fields, values):
        return part_by_value(data, start)
    return Parted(replaced(data, spans, [b"null"] * len(spans)), fields, len(spans))


def as_object(value: Any) -> dict[str, Any]:
    """Return the value if it is a JSON object.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004
    return value


def choices_of(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the choices of an answer or event; empty when there are none."""
    choices = fields.get("choices")
    if not isinstance(choices, list):
        return []
    return [choice for choice in choices if isinstance(choice, dict)]


def put_back(fields: dict[str, Any], values: Sequence[Any]) -> bool:
    """Put each value in place of its number; False when one stood elsewhere than in a choice."""
    placed = 0
    for choice in choices_of(fields):
        number = choice.get("logprobs")
        if number is not None and placed < len(values) and number == placed:
            choice["logprobs"] = values[placed]
            placed += 1
    return placed == len(values)


def part_by_value(data: bytes, start: int) -> Parted:
    """Part an answer of unusual build by parsing all of it and writing it anew, compactly."""
    fields = as_object(loads(data[start:]))
    bare = dict(fields)
    bare["choices"] = [without_logprobs(choice) for choice in fields.get("choices") or []]
    written = json.dumps(bare, ensure_ascii=False, separators=(",", ":"))
    tail = data[len(data.rstrip()) :]
    rest = data[:start] + written.encode("utf-8", "surrogatepass") + tail
    return Parted(rest, fields, len(choices_of(fields)))


def without_logprobs(choice: Any) -> Any:
    """Return a choice as the engine writes it where none were asked."""
    if isinstance(choice, dict) and isinstance(choice.get("logprobs"), dict):
        return {**choice, "logprobs": None}
    return choice


def value_spans(data: bytes, start: int) -> list[tuple[int, int, Any]]:
    """Find every value of `logprobs`: where it begins and ends, and the parsed value.

    Raises:
        ValueError: a value is no JSON.
    """
    spans: list[tuple[int, int, Any]] = []
    match = KEY.search(data, start)
    while match:
        end, value = read_value(data, match.end())
        spans.append((match.end(), end, value))
        match = KEY.search(data, end)
    return spans


def read_value(data: bytes, begin: int) -> tuple[int, Any]:
    """Return the end of the object that begins there, and the object.

    Raises:
        ValueError: it does not end, or is no JSON.
    """
    guess = data.find(NEXT_FIELD, begin)
    if guess > 0:
        try:
            return guess, orjson.loads(data[begin:guess])
        except orjson.JSONDecodeError:
            pass
    end = value_end(data, begin)
    return end, loads(data[begin:end])


def value_end(data: bytes, begin: int) -> int:
    """Return where the object or list that begins there ends.

    Raises:
        ValueError: it does not end.
    """
    depth = 0
    for match in TOKEN.finditer(data, begin):
        sign = match[0]
        depth += (sign in b"{[") - (sign in b"}]")
        if depth == 0:
            return match.end()
    raise ValueError("unbalanced brackets")


def replaced(
    data: bytes, spans: Sequence[tuple[int, int, Any]], substitutes: Sequence[bytes]
) -> bytes:
    """Return the data with each span replaced."""
    pieces: list[bytes] = []
    at = 0
    for (begin, end, _), substitute in zip(spans, substitutes, strict=True):
        pieces += (data[at:begin], substitute)
        at = end
    pieces.append(data[at:])
    return b"".join(pieces)


def exists_for_logprobs_only(fields: dict[str, Any]) -> bool:
    """Return True for a chat event that the engine sends only to carry log probabilities.

    Such events stand for tokens that a tool or reasoning parser holds back. Source: vLLM 0.32.0,
    entrypoints/openai/chat_completion/serving.py; seen with `--tool-call-parser hermes`.
    """
    choices = fields.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        return False
    choice: dict[str, Any] = choices[0]
    return (
        choice.get("delta") == {}
        and choice.get("finish_reason") is None
        and isinstance(choice.get("logprobs"), dict)
    )


class LogprobsCut:
    """Takes log probabilities out of an answer of any length, in bounded memory."""

    def __init__(self, key: re.Pattern[bytes] = KEY) -> None:
        self._key = key
        self._held = b""
        self._depth = 0

    def feed(self, data: bytes) -> bytes:
        """Return what is certain of the answer so far."""
        self._held += data
        pieces: list[bytes] = []
        while self._step(pieces):
            pass
        return b"".join(pieces)

    def end(self) -> bytes:
        """Return what was held back, at the end of the answer."""
        rest, self._held = self._held, b""
        return rest if self._depth == 0 else b""

    def _step(self, pieces: list[bytes]) -> bool:
        return self._skip() if self._depth else self._copy(pieces)

    def _copy(self, pieces: list[bytes]) -> bool:
        match = self._key.search(self._held)
        if match is None:
            keep = max(len(self._held) - LONGEST_KEY_BYTES, 0)
            pieces.append(self._held[:keep])
            self._held = self._held[keep:]
            return False
        pieces += (self._held[: match.end()], b"null")
        opening = self._held[match.end() : match.end() + 1]
        self._held = self._held[match.end() + 1 :]
        self._depth = int(opening in b"{[")
        return True

    def _skip(self) -> bool:
        for match in TOKEN.finditer(self._held):
            sign = match[0]
            if sign == b'"':
                self._held = self._held[match.start() :]
                return False
            self._depth += (sign in b"{[") - (sign in b"}]")
            if self._depth == 0:
                self._held = self._held[match.end() :]
                return True
        self._held = b""
        return False
