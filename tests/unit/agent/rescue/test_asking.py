"""An engine is asked how it reads a prompt; where it cannot tell, the answer goes on by text."""

import json
from typing import Any

import pytest
from tests.unit.agent.rescue.streams import FakeUpstream, Script, asking, request_of

from gatemesh_agent.requests import Route
from gatemesh_agent.rescue.asking import Asking, prompt_ids, read_tokens
from gatemesh_agent.rescue.continuing import Tokenized
from gatemesh_agent.rescue.kept import Kept

KEPT = Kept("Hello there", (7, 8, 9), 3)


async def prepared(
    upstream: FakeUpstream, kept: Kept = KEPT, route: Route = Route.CHAT, **body: Any
) -> tuple[str, dict[str, Any]]:
    """Return path and body of the request for the rest."""
    request = request_of(asking(route, **body))
    rest = await Asking(upstream).prepare(request, kept, "http://b")  # type: ignore[arg-type]
    return rest.path, json.loads(rest.asked.raw)


async def test_the_prompts_ids_come_from_the_engine_that_goes_on() -> None:
    """Which has the same template."""
    upstream = FakeUpstream()
    path, body = await prepared(upstream)
    assert path == "/v1/completions"
    assert body["prompt"] == [1, 2, 3, 7, 8, 9]
    assert [each[1] for each in upstream.asked] == ["/tokenize"]


async def test_without_them_it_goes_on_by_text() -> None:
    """As at engines that do not tell."""
    path, body = await prepared(FakeUpstream(tokenize=Script(b"{}", status=404)))
    assert path == "/v1/chat/completions"
    assert body["messages"][-1]["content"] == "Hello there"


async def test_what_was_said_is_counted_where_that_is_not_known() -> None:
    """For the limit of the rest: three tokens, says the engine."""
    path, body = await prepared(FakeUpstream(), Kept("Hello there", None, 9), max_tokens=10)
    assert path == "/v1/chat/completions"
    assert body["max_tokens"] == 7


async def test_a_text_is_counted_as_an_engine_spells_it() -> None:
    """Where it says so."""
    for tokenize, count in ((None, 3), (Script(b"{}", status=404), None)):
        upstream: Any = FakeUpstream(tokenize=tokenize)
        assert await Asking(upstream).count(request_of(asking()), "Hi", "http://b") == count


async def test_a_prompt_of_ids_goes_on_by_ids_always() -> None:
    """The text is spelled by the engine where its ids are not known."""
    body: dict[str, Any] = {"prompt": [4, 5], "max_tokens": 10}
    _, known = await prepared(FakeUpstream(), route=Route.COMPLETIONS, **body)
    assert known["prompt"] == [4, 5, 7, 8, 9]
    _, spelled = await prepared(FakeUpstream(), Kept("x", None, 9), Route.COMPLETIONS, **body)
    assert (spelled["prompt"], spelled["max_tokens"]) == ([4, 5, 1, 2, 3], 7)


async def test_channels_are_not_gone_on_with() -> None:
    """Their prompt is read in another way than `/tokenize` says."""
    request = request_of(asking())
    for text, plain in ((b"<think>Hm.</think>Hello there", True), (b"<|channel|>x", False)):
        upstream = FakeUpstream()
        upstream.scripts["http://b"] = [Script(b'{"prompt":"%b"}' % text)]
        prepare = Asking(upstream).prepare(request, KEPT, "http://b", reasoned=True)  # type: ignore[arg-type]
        if plain:
            assert (await prepare).path == "/v1/completions"
        else:
            with pytest.raises(ValueError, match="channels"):
                await prepare


@pytest.mark.parametrize(
    ("page", "tokens"),
    [
        (b'{"tokens":[1,2],"max_model_len":9}', Tokenized((1, 2), 9)),
        (b'{"tokens":[1]}', Tokenized((1,), 0)),
        (b'{"tokens":["a"]}', None),
        (b'{"count":1}', None),
        (b"x", None),
    ],
)
def test_odd_answers_tell_nothing(page: bytes, tokens: Tokenized | None) -> None:
    """Another engine may answer anything."""
    assert read_tokens(page) == tokens


def test_only_a_completions_prompt_comes_as_ids() -> None:
    """One, in a list of its own or not."""
    assert prompt_ids(request_of(asking(Route.COMPLETIONS, prompt=[[1, 2]]))) == Tokenized(
        (1, 2), 0
    )
    assert prompt_ids(request_of(asking(Route.COMPLETIONS))) is None
    assert prompt_ids(request_of(asking())) is None
