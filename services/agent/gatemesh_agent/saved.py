"""Reads answers that were saved: cases, records, whole bodies and captured streams. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gatemesh_agent.dialects import READERS
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.reading import Part, Reading
from gatemesh_agent.requests import Route, parsed
from gatemesh_agent.sse import EventSplitter, json_start
from gatemesh_agent.stripping import loads
from gatemesh_common.errors import GatemeshError

OK = 200
FIRST_OF_STREAM = (b"data:", b"event:", b":")
KINDS = (
    "a case (`request`, `response`), a recorded answer (`request`, `status`, `body`), or the "
    "answer of /v1/chat/completions, /v1/completions, /v1/responses or /v1/messages"
)


class SavedError(GatemeshError):
    """What was saved cannot be judged; the text says where and what to do."""


@dataclass(slots=True)
class SavedChoice:
    """One choice of a saved answer, in the pieces in which it came."""

    index: int
    readings: list[Reading] = field(default_factory=list)
    finish_reason: str | None = None

    @property
    def text(self) -> str:
        """All of its text."""
        return "".join(reading.text for reading in self.readings)

    @property
    def steps(self) -> list[TokenStep]:
        """All of its steps."""
        return [step for reading in self.readings for step in reading.steps]


@dataclass(frozen=True, slots=True)
class SavedAnswer:
    """One saved answer and the request to it, as far as it is known."""

    label: str
    request: Mapping[str, Any]
    choices: tuple[SavedChoice, ...] = ()
    status: int = OK
    body: bytes = b""
    """What an engine said that refused."""
    expect: str | None = None
    """`pass` or `fail`, where a case says what is right."""


def read_saved(data: bytes, name: str, request: Mapping[str, Any]) -> Iterator[SavedAnswer]:
    """Yield the answers in a file, whatever of the known kinds it is.

    Raises:
        SavedError: it, or a line of it, is of none.
    """
    if not data.strip():
        raise SavedError(f"{name} is empty; give {KINDS}")
    if data.lstrip().startswith(FIRST_OF_STREAM):
        yield answer_of(name, request, events_of(data.lstrip(), name))
        return
    whole = parsed(data)
    if whole is not None:
        yield one_of(whole, name, request)
        return
    yield from read_lines(data, name, request)


def read_lines(
    data: bytes, name: str, request: Mapping[str, Any] | None = None
) -> Iterator[SavedAnswer]:
    """Yield the answers of JSON Lines.

    Raises:
        SavedError: a line is no JSON object, or of no known kind.
    """
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            where = f"{name}, line {number}"
            yield one_of(object_of(line, where), where, request or {})


def object_of(line: bytes, where: str) -> dict[str, Any]:
    """Return the JSON object of a line.

    Raises:
        SavedError: it is none.
    """
    try:
        value = loads(line)
    except (ValueError, RecursionError) as error:
        raise SavedError(f"{where}: not JSON ({error}); repair or drop it") from error
    if not isinstance(value, dict):
        raise SavedError(f"{where}: not a JSON object; give {KINDS}")
    return value


def one_of(fields: Mapping[str, Any], where: str, request: Mapping[str, Any]) -> SavedAnswer:
    """Return the answer in a JSON object.

    Raises:
        SavedError: it is of no known kind, or a field is missing or odd.
    """
    if "response" in fields and "request" in fields:
        return read_case(fields, where)
    if "body" in fields:
        return read_recorded(fields, where)
    if route_of_answer(fields) is None and "error" not in fields:
        raise SavedError(f"{where}: no field that is known; give {KINDS}")
    if "error" in fields and route_of_answer(fields) is None:
        return refusal(where, request, json.dumps(fields).encode())
    return answer_of(where, request, [dict(fields)])


def refusal(label: str, request: Mapping[str, Any], body: bytes, status: int = 400) -> SavedAnswer:
    """Return an answer that an engine refused to give."""
    return SavedAnswer(label, request, status=status, body=body)


def read_case(fields: Mapping[str, Any], where: str) -> SavedAnswer:
    """Read one labelled case, with its steps along with its text.

    Raises:
        SavedError: a field is missing or odd.
    """
    request = mapping_in(fields, "request", where)
    response = mapping_in(fields, "response", where)
    text = response.get("text") or ""
    if not isinstance(text, str):
        raise SavedError(f"{where}: field 'response.text' is not text")
    calls = response.get("tool_calls") or ()
    steps = steps_of_case(response.get("logprobs") or (), where)
    choice = SavedChoice(0, finish_reason=response.get("finish_reason"))
    choice.readings += readings_of(text, steps)
    choice.readings.append(Reading("", (), other_output=False, calls=calls))
    expect = fields.get("expect")
    label = str(fields.get("id") or where)
    return SavedAnswer(label, request, (choice,), expect=expect if expect in EXPECTED else None)


EXPECTED = ("pass", "fail")


def steps_of_case(entries: Sequence[Any], where: str) -> list[TokenStep]:
    """Return the steps of a case: `token`, `logprob` and `top`, pairs of token and figure.

    Raises:
        SavedError: an entry is odd.
    """
    try:
        return [
            TokenStep(
                str(entry.get("token", "")),
                entry.get("logprob"),
                tuple(candidate[1] for candidate in entry.get("top") or ()),
            )
            for entry in entries
        ]
    except (AttributeError, TypeError, IndexError, KeyError) as error:
        raise SavedError(
            f"{where}: field 'response.logprobs' is not a list of token, logprob and top"
        ) from error


def readings_of(text: str, steps: Sequence[TokenStep]) -> Iterator[Reading]:
    """Yield a text step by step, each with its part of it; then what is left."""
    at = 0
    for step in steps:
        piece = text[at : at + len(step.text)]
        at += len(piece)
        yield Reading(piece, (step,), other_output=False, calls=())
    if at < len(text):
        yield Reading(text[at:], (), other_output=False, calls=())


def read_recorded(fields: Mapping[str, Any], where: str) -> SavedAnswer:
    """Read one recorded answer: its raw body, and the status with which it came.

    Raises:
        SavedError: a field is missing or odd, or the body is no answer.
    """
    request = mapping_in(fields, "request", where)
    status, body = fields.get("status"), fields.get("body")
    if not isinstance(status, int):
        raise SavedError(f"{where}: field 'status' is missing or no number")
    if not isinstance(body, str):
        raise SavedError(f"{where}: field 'body' is missing or no text")
    raw = body.encode("utf-8", "surrogatepass")
    if status != OK:
        return refusal(where, request, raw, status)
    if raw.lstrip().startswith(FIRST_OF_STREAM):
        return answer_of(where, request, events_of(raw.lstrip(), f"{where}, field 'body'"))
    return answer_of(where, request, [object_of(raw, f"{where}, field 'body'")])


def mapping_in(fields: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    """Return an object that is a field.

    Raises:
        SavedError: it is missing or something else.
    """
    value = fields.get(name)
    if not isinstance(value, Mapping):
        raise SavedError(f"{where}: field {name!r} is missing or no JSON object")
    return value


def events_of(data: bytes, where: str) -> list[dict[str, Any]]:
    """Return the JSON of a stream's events.

    Raises:
        SavedError: an event is no JSON, or there is none.
    """
    # What follows the last empty line was cut off with the stream.
    found = []
    for number, event in enumerate(EventSplitter().feed(data.rstrip() + b"\n\n"), 1):
        start = json_start(event)
        if start >= 0:
            found.append(object_of(event[start:], f"{where}, event {number}"))
    if not found:
        raise SavedError(f"{where}: a stream without an event that carries JSON")
    return found


def route_of_answer(fields: Mapping[str, Any]) -> Route | None:
    """Return the route whose answers, or events, look like this."""
    kind = fields.get("type")
    if isinstance(fields.get("choices"), list):
        return Route.CHAT
    if isinstance(fields.get("output"), list) or str(kind).startswith("response."):
        return Route.RESPONSES
    if kind == "message" or str(kind).startswith(("message_", "content_block_")):
        return Route.MESSAGES
    return None


def answer_of(
    label: str, request: Mapping[str, Any], events: Sequence[dict[str, Any]]
) -> SavedAnswer:
    """Return an answer from its events, or from the one object of a whole one."""
    wished = request.get("logprobs")
    count = wished if isinstance(wished, int) and not isinstance(wished, bool) else None
    choices: dict[int, SavedChoice] = {}
    for event in events:
        for part in parts_of(event, count):
            choice = choices.setdefault(part.choice, SavedChoice(part.choice))
            choice.readings.append(part.reading)
            choice.finish_reason = part.finish_reason or choice.finish_reason
    return SavedAnswer(label, request, tuple(choices.values()))


def parts_of(event: dict[str, Any], count: int | None) -> Iterator[Part]:
    """Yield what an event says, by whichever route it came."""
    route = route_of_answer(event)
    if route is not None:
        yield from READERS[route](event, count)
