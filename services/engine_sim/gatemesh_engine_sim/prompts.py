"""Reads the prompt of a request: what is asked, its token ids, and what of the answer it holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from gatemesh_engine_sim.continuing import ASSISTANT, NO_THOUGHTS, Begun, turn_under_way
from gatemesh_engine_sim.errors import bad_request, malformed
from gatemesh_engine_sim.vocabulary import Vocabulary

Body = dict[str, Any]

BOTH_ENDS = (
    "continue_final_message and add_generation_prompt are not compatible. Use "
    "continue_final_message when you want the model to continue the final message, and "
    "add_generation_prompt when you want to add a header that will prompt it to start a new "
    "assistant message instead."
)
TOOLS = "# Tools\n"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, understood."""

    question: str
    """What picks the answer: the last message of a person, or the prompt."""
    ids: tuple[int, ...]
    begun: Begun = ()
    """What of the answer is there already."""
    plain: Begun | None = None
    """A prompt without turns, whose end may be the beginning of its own answer."""


def text_of_content(content: object) -> str:
    """The text of a message, given as a string or as parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def conversation(messages: object) -> list[tuple[str, str]]:
    """Role and text of each message.

    Raises:
        ApiError: it is no list of messages.
    """
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        raise malformed("list_type", "Input should be a valid list", "messages", value=messages)
    return [(str(one.get("role", "")), text_of_content(one.get("content"))) for one in messages]


def chat_ids(body: Body, words: Vocabulary) -> list[int]:
    """The token ids of a conversation, its end as the body orders it.

    Raises:
        ApiError: it is no conversation, or two ends are ordered.
    """
    continues = bool(body.get("continue_final_message"))
    opens = body.get("add_generation_prompt", True)
    if continues and opens:
        raise bad_request(BOTH_ENDS)
    messages = conversation(body["messages"])
    if body.get("tools"):
        messages.insert(0, ("system", TOOLS + orjson.dumps(body["tools"]).decode()))
    if continues:
        return words.chat_ids(messages[:-1], _turn_begun(*messages[-1]))
    thinks = (body.get("chat_template_kwargs") or {}).get("enable_thinking", True)
    return words.chat_ids(messages, (ASSISTANT if thinks else ASSISTANT + NO_THOUGHTS) * opens)


def _turn_begun(role: str, text: str) -> str:
    return f"{role}\n{text}"


def chat_prompt(body: Body, words: Vocabulary) -> Prompt:
    """The prompt of a conversation.

    Raises:
        ApiError: there is none.
    """
    if "messages" not in body:
        raise malformed("missing", "Field required", "messages", value=body)
    messages = conversation(body["messages"])
    if not messages:
        raise bad_request(
            "Cannot apply chat template to an empty conversation. Provide at least one message."
        )
    ids = tuple(chat_ids(body, words))
    if body.get("continue_final_message") and messages[-1][0] == "assistant":
        question = messages[-2][1] if len(messages) > 1 else ""
        return Prompt(question, ids, messages[-1][1])
    return Prompt(messages[-1][1], ids)


def completion_prompt(body: Body, words: Vocabulary) -> Prompt:
    """The prompt of a completion, text or token ids.

    Raises:
        ApiError: there is none.
    """
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and not isinstance(prompt[0], int):
        prompt = prompt[0]
    if isinstance(prompt, str) and prompt:
        return Prompt(prompt, tuple(words.encode(prompt)), plain=prompt)
    if isinstance(prompt, list) and prompt and all(isinstance(one, int) for one in prompt):
        return _prompt_of_ids(prompt, words)
    raise bad_request(
        "Either prompt or prompt_embeds must be provided and non-empty. (parameter=prompt)",
        "prompt",
    )


def _prompt_of_ids(ids: Sequence[int], words: Vocabulary) -> Prompt:
    turn = turn_under_way(ids, words)
    if turn is None:
        return Prompt(words.decode(ids), tuple(ids), plain=tuple(ids))
    question, begun = turn
    return Prompt(question, tuple(ids), begun)
