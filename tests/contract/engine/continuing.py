"""How an answer is gone on with at an engine; the simulated one and the real one agree."""

from typing import Any

import pytest
from tests.alike import alike_later
from tests.contract.engine.contract import QUESTION, STORY, Target, joined

TOKENS = 24
CUTS = (1, 2, 7, 16, 23)
COUNT = "1, 2, 3, 4, 5, 6,"
"""A plain prompt whose completion a small model does not hesitate about."""
TOOL = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
}


class ContinuingContract:
    """Needs a fixture `engine` that answers."""

    @pytest.mark.parametrize("cut", CUTS)
    async def test_ids_of_a_chat_go_on(self, engine: Target, cut: int) -> None:
        """Prompt and answer as token ids: the rest has the ids and the count of the uncut one."""

        async def both() -> tuple[list[int], list[int]]:
            whole = (await story(engine)).json
            ids = whole["choices"][0]["token_ids"]
            rest = (await go_on(engine, whole["prompt_token_ids"] + ids[:cut], cut)).json
            assert rest["usage"]["prompt_tokens"] == len(whole["prompt_token_ids"]) + cut
            assert rest["usage"]["completion_tokens"] == TOKENS - cut
            assert rest["choices"][0]["finish_reason"] == "length"
            return rest["choices"][0]["token_ids"], ids[cut:]

        rest, expected = await alike_later(both)
        assert rest == expected

    async def test_streamed_rest_completes_the_text(self, engine: Target) -> None:
        """Joined to what the client has; the ids come with each event."""

        async def both() -> tuple[str, str]:
            events = (await story(engine, stream=True)).events
            prompt, whole = events[0]["prompt_token_ids"], joined(events)
            chosen = [one["choices"][0] for one in events[1:]]
            kept = chosen[:10]
            ids = [number for one in kept for number in one["token_ids"] or []]
            rest = (await go_on(engine, prompt + ids, len(ids), stream=True)).events
            begun = "".join(one["delta"].get("content", "") for one in kept)
            return begun + "".join(one["choices"][0]["text"] for one in rest), whole

        text, expected = await alike_later(both)
        assert text == expected

    async def test_ids_of_a_plain_prompt_go_on(self, engine: Target) -> None:
        """There is no turn between a prompt and its completion."""

        async def both() -> tuple[list[int], list[int]]:
            asked = {"max_tokens": TOKENS, "return_token_ids": True, "ignore_eos": True}
            [whole] = (await engine.complete(prompt=COUNT, **asked)).json["choices"]
            ids = whole["token_ids"]
            cut = min(9, len(ids) - 1)
            rest = await go_on(engine, whole["prompt_token_ids"] + ids[:cut], cut)
            return rest.json["choices"][0]["token_ids"], ids[cut:]

        rest, expected = await alike_later(both)
        assert rest == expected

    async def test_text_goes_on(self, engine: Target) -> None:
        """The partial answer as the last message; the new part alone comes back."""

        async def both() -> tuple[str, str]:
            whole = (await story(engine)).json["choices"][0]["message"]["content"]
            cut = whole.index(" ", 20)
            rest = await engine.chat(**begun_with(whole[:cut]), max_tokens=TOKENS)
            [choice] = rest.json["choices"]
            assert choice["message"]["role"] == "assistant"
            text = choice["message"]["content"]
            return text[: len(whole) - cut], whole[cut:]

        rest, expected = await alike_later(both)
        assert rest == expected

    async def test_text_is_refused_with_a_new_turn(self, engine: Target) -> None:
        """Left at its default, `add_generation_prompt` contradicts it."""
        body = begun_with("Once upon a time")
        del body["add_generation_prompt"]
        assert (await engine.chat(**body)).status == 400

    async def test_stop_string_after_the_cut(self, engine: Target) -> None:
        """Stops the rest at the same place; what lies before the cut is not looked at."""
        whole = (await story(engine)).json
        ids, prompt = whole["choices"][0]["token_ids"], whole["prompt_token_ids"]
        tail = (await go_on(engine, prompt + ids[:8], 8)).json["choices"][0]["text"]
        stop = tail.split()[2]
        stopped = await go_on(engine, prompt + ids[:8], 8, stop=[stop])
        [choice] = stopped.json["choices"]
        assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
        assert choice["text"] == tail[: tail.index(stop)]

    async def test_tokenized_beginning_is_the_prompt_of_its_rest(self, engine: Target) -> None:
        """The ids of a conversation with a partial answer are those that a chat goes on from."""
        body = begun_with("Once upon a time")
        chat = (await engine.chat(**body, return_token_ids=True)).json
        asked = {"model": engine.model, **body}
        tokenized = (await engine.post("/tokenize", asked)).json
        assert tokenized["tokens"] == chat["prompt_token_ids"]
        del asked["add_generation_prompt"]
        assert (await engine.post("/tokenize", asked)).status == 400

    async def test_tools_and_template_arguments_belong_to_the_prompt(self, engine: Target) -> None:
        """Whoever tokenizes a conversation has to hand them on."""
        more: dict[str, Any] = {"tools": [TOOL], "chat_template_kwargs": {"enable_thinking": False}}
        chat = await engine.chat(**more, tool_choice="none", return_token_ids=True)
        asked = {"model": engine.model, "messages": QUESTION, **more}
        tokenized = (await engine.post("/tokenize", asked)).json
        assert tokenized["tokens"] == chat.json["prompt_token_ids"]


async def story(engine: Target, **more: Any) -> Any:
    """An answer of a set length, with its ids."""
    asked = {"messages": STORY, "max_tokens": TOKENS, "return_token_ids": True, "ignore_eos": True}
    return await engine.chat(**asked, **more)


async def go_on(engine: Target, ids: list[int], cut: int, **more: Any) -> Any:
    """Go on after a prompt and the first tokens of its answer."""
    asked = {"max_tokens": TOKENS - cut, "return_token_ids": True, "ignore_eos": True}
    return await engine.complete(prompt=ids, **asked, **more)


def begun_with(text: str) -> dict[str, Any]:
    """The fields of a chat whose answer begins with a text."""
    messages = [*STORY, {"role": "assistant", "content": text}]
    return {"messages": messages, "continue_final_message": True, "add_generation_prompt": False}
