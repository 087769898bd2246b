"""What the client asked for, as far as it changes what counts as a fault."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gatemesh_agent.gates.topics import Topic, speaks_of
from gatemesh_common.messages import Decoding

WIDE_TEMPERATURE = 0.95
"""From here on a healthy engine draws odd tokens now and then."""
HOT_TEMPERATURE = 1.3
"""From here on broken text is what the client asked for."""
PROMPT_CHARS = 65_536
"""Of a longer prompt only both ends are read, a quarter from the start."""
RESHAPING = (
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "min_tokens",
    "bad_words",
    "allowed_token_ids",
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "logits_processors",
    "use_beam_search",
    "stop_token_ids",
    "ignore_eos",
)
"""Fields with which the engine does not choose from the distribution that it reports."""
RESHAPES = frozenset(RESHAPING)


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What the gates know of one request."""

    prompt: str = ""
    """All messages joined; empty when only token ids are known."""
    chat: bool = True
    temperature: float | None = None
    max_tokens: int | None = None
    demands_json: bool = False
    required_keys: tuple[str, ...] = ()
    """Keys that the demanded JSON object must have."""
    tools: Mapping[str, tuple[str, ...]] | None = None
    """Required arguments by name of each tool on offer; None when there are none."""
    reshaped: bool = False
    """True when tokens are chosen from another distribution than the one reported."""
    echo: bool = False
    stops: bool = False
    """True when the client named stop strings, so that an answer may end at its first token."""

    @property
    def decoding(self) -> Decoding:
        """How tokens are chosen."""
        if self.temperature is None:
            return Decoding.UNKNOWN
        return Decoding.GREEDY if self.temperature == 0 else Decoding.SAMPLED

    @property
    def wide(self) -> bool:
        """True when odd tokens are to be expected now and then."""
        return self.temperature is None or self.temperature >= WIDE_TEMPERATURE

    @property
    def hot(self) -> bool:
        """True when broken text is to be expected."""
        return self.temperature is not None and self.temperature > HOT_TEMPERATURE

    def asks(self, *topics: Topic) -> bool:
        """Return True when the prompt speaks of one of the topics."""
        return any(speaks_of(self.prompt, topic) for topic in topics)


def context_of(request: Mapping[str, Any]) -> RequestContext:
    """Read the body of a request of any guarded route; odd values count as absent."""
    demands_json = format_of(request) in JSON_FORMATS
    return RequestContext(
        prompt=shortened(prompt_of(request)),
        chat="messages" in request or "input" in request,
        temperature=number(request.get("temperature")),
        max_tokens=next((size for name in MOST_TOKENS if (size := whole(request.get(name)))), None),
        demands_json=demands_json,
        required_keys=required_of(request.get("response_format")),
        tools=tools_of(request),
        reshaped=is_reshaped(request) or demands_json,
        echo=bool(request.get("echo")),
        stops=any(request.get(name) for name in STOPS),
    )


STOPS = ("stop", "stop_sequences", "stop_token_ids")
MOST_TOKENS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
JSON_FORMATS = ("json_object", "json_schema")
FORMATS = (("response_format",), ("text", "format"), ("output_config", "format"))
"""Where a request says which format it wants: chat completions, responses, messages."""


def format_of(request: Mapping[str, Any]) -> object:
    """Return the type of format that a request demands; None where it demands none."""
    for path in FORMATS:
        if path[0] not in request:
            continue
        wanted: object = request
        for name in path:
            wanted = wanted.get(name) if isinstance(wanted, Mapping) else None
        if isinstance(wanted, Mapping):
            return wanted.get("type")
    return None


def number(value: object) -> float | None:
    """Return a finite JSON number as float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def whole(value: object) -> int | None:
    """Return a JSON integer."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def shortened(prompt: str) -> str:
    """Return a prompt of bounded length that keeps both ends."""
    if len(prompt) <= PROMPT_CHARS:
        return prompt
    head = PROMPT_CHARS // 4
    return prompt[:head] + "\n" + prompt[head - PROMPT_CHARS :]


def prompt_of(request: Mapping[str, Any]) -> str:
    """Return all text that the engine was given; empty where only token ids are known."""
    found: list[str] = []
    for name in PROMPT_FIELDS:
        if name in request:
            add_texts(request[name], DEEPEST_TEXT, found)
    return "\n".join(found)


PROMPT_FIELDS = ("system", "instructions", "messages", "input", "prompt")
TEXT_FIELDS = ("content", "text", "output")
"""Of a message, a part of one, and what a tool answered."""
DEEPEST_TEXT = 6
"""Lists and objects around a text: items, their content, a tool's result, its parts."""


def add_texts(value: object, depth: int, found: list[str]) -> None:
    """Add the texts of a prompt, which is text, or a list of messages with parts."""
    if isinstance(value, str):
        found.append(value)
    # Whether something is an abstract mapping takes ten times as long to find out.
    elif isinstance(value, (dict, Mapping)):
        for name in TEXT_FIELDS if depth else ():
            if name in value:
                add_texts(value[name], depth - 1, found)
    elif isinstance(value, (list, Sequence)) and depth:
        for each in value:
            add_texts(each, depth - 1, found)


def required_of(form: object) -> tuple[str, ...]:
    """Return the keys that a JSON schema demands of the whole answer."""
    wrapped = form.get("json_schema") if isinstance(form, Mapping) else None
    schema = wrapped.get("schema") if isinstance(wrapped, Mapping) else None
    return words_in(schema.get("required")) if isinstance(schema, Mapping) else ()


def words_in(listed: object) -> tuple[str, ...]:
    """Return the words of a JSON list."""
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        return ()
    return tuple(word for word in listed if isinstance(word, str))


def tools_of(request: Mapping[str, Any]) -> dict[str, tuple[str, ...]] | None:
    """Return the tools on offer and the arguments that each one requires."""
    offered = request.get("tools")
    if not isinstance(offered, Sequence) or isinstance(offered, str):
        return None
    found = dict(tool for entry in offered if (tool := tool_of(entry)) is not None)
    return found or None


def tool_of(entry: object) -> tuple[str, tuple[str, ...]] | None:
    """Return name and required arguments of one tool: nested in `function`, or flat."""
    function = entry.get("function", entry) if isinstance(entry, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or not isinstance(function, Mapping):
        return None
    schema = function.get("parameters", function.get("input_schema"))
    return name, words_in(schema.get("required") if isinstance(schema, Mapping) else None)


FREE_CHOICES = ("auto", "none")
"""Types of tool choice of `/v1/messages` that leave it to the model."""


def is_reshaped(request: Mapping[str, Any]) -> bool:
    """Return True when penalties, biases or grammars change the choice of tokens."""
    if number(request.get("repetition_penalty")) not in {None, 1.0}:
        return True
    choice = request.get("tool_choice")
    free = isinstance(choice, Mapping) and choice.get("type") in FREE_CHOICES
    forced = (isinstance(choice, Mapping) and not free) or choice == "required"
    # Nearly no request has any of them, which one look at its names tells.
    return forced or (
        not RESHAPES.isdisjoint(request) and any(request.get(name) for name in RESHAPING)
    )
