"""A stream goes on elsewhere within the pool's terms, or ends with an error that says why."""

import json
from typing import Any

import pytest
from tests.unit.agent.rescue.streams import (
    Bench,
    FakeClient,
    FakeUpstream,
    Script,
    asking,
    broken,
    event,
    opening,
    spoken,
    sse,
    text_of,
    unreachable,
    whole,
    words,
)

from gatemesh_agent.errors import StreamBrokenError
from gatemesh_agent.requests import Asked, Route
from gatemesh_agent.routing import PoolView
from gatemesh_agent.sse import DONE
from gatemesh_common.messages import InstanceState

NAN = event("", logprob=None, number=0)
REST = b"".join([spoken(" wide"), spoken(".", finish="stop", number=10), DONE])


def bad(*said: str) -> Script:
    """Return a stream that turns bad behind these tokens."""
    return Script(opening() + words(*said) + NAN * 3)


def engines(*scripts: Script | Exception, name: str = "b") -> FakeUpstream:
    """Return engines of which one goes on so; the other is away."""
    others: dict[str, Any] = {f"http://{each}": [unreachable()] * 9 for each in "bc"}
    return FakeUpstream({**others, f"http://{name}": list(scripts)})


async def served(bench: Bench, script: Script, asked: Asked | None = None) -> FakeClient:
    """Return what a client got."""
    return await bench.serve(script, bench.story(asked, tells=True))


def error_of(client: FakeClient) -> dict[str, Any]:
    """Return the error that ended a stream."""
    [line] = [line for line in client.sent.split(b"\n") if b'"error"' in line]
    return json.loads(line.removeprefix(b"data: "))["error"]  # type: ignore[no-any-return]


async def test_another_goes_on_from_the_last_good_token() -> None:
    """In the first one's stream; the client's marker tells."""
    bench = Bench(engines(Script(REST)))
    client = await served(bench, bad("The", " sea", " is"))
    assert text_of(client.sent) == "The sea is wide."
    assert client.sent.count(b"chatcmpl-1") == 6
    assert b"cmpl-2" not in client.sent
    assert client.sent.count(DONE) == 1
    assert client.ended
    assert (
        b'gatemesh-rescue {"from":"a","to":"b","cause":"gate","reason":"nan_logits"' in client.sent
    )
    path, body = bench.upstream.rest()
    assert path == "/v1/completions"
    assert body["prompt"] == [1, 2, 3, 100, 101, 102]


async def test_the_one_that_failed_is_not_asked_again() -> None:
    """Nor is one that was tried since."""
    bench = Bench(FakeUpstream({"http://b": [unreachable()], "http://c": [Script(REST)]}))
    client = await served(bench, bad("The"))
    assert text_of(client.sent) == "The wide."
    assert not any(url == "http://a" for url, *_ in bench.upstream.asked)


async def test_nothing_seen_is_asked_anew() -> None:
    """The client's own request, bytes and all; the turn is begun once."""
    bench = Bench(engines(Script(*whole("All", " is", " well."))))
    client = await served(bench, bad())
    assert text_of(client.sent) == "All is well."
    assert client.sent.count(b'"role"') == 1
    assert bench.upstream.rest()[0] == "/v1/chat/completions"
    assert b'"by":"restart"' in client.sent


async def test_a_second_fault_is_carried_on_as_well() -> None:
    """As often as may be; then it ends with an error."""
    again = [Script(spoken(f" {name}", number=20 + at), broken()) for at, name in enumerate("xy")]
    bench = Bench(FakeUpstream({"http://b": again[:1], "http://c": again[1:]}))
    client = await served(bench, bad("The"))
    assert text_of(client.sent) == "The x y"
    assert error_of(client)["code"] == "rescue_continuations"
    once = Bench(engines(Script(spoken(" x"), broken())), continuations=1)
    assert error_of(await served(once, bad("The")))["code"] == "rescue_continuations"


async def test_a_request_is_not_carried_through_the_pool_to_kill_it() -> None:
    """Two engines that died under it are enough."""
    died = sse({"error": {"message": "EngineCore encountered an issue.", "code": 500}})
    bench = Bench(FakeUpstream({f"http://{one}": [Script(spoken(" x"), died)] for one in "bc"}))
    client = await served(bench, Script(opening() + words("The") + died))
    assert error_of(client)["code"] == "rescue_deaths"


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (asking(response_format={"type": "json_object"}), "structured_output"),
        (asking(frequency_penalty=1), "penalties"),
        (asking(n=2, temperature=1), "several_choices"),
    ],
)
async def test_where_meaning_could_change_it_ends(asked: Asked, code: str) -> None:
    """Behind what was good; nobody is asked, and a second opinion may be."""
    bench = Bench(engines(Script(REST)))
    client = await served(bench, bad("The"), asked)
    assert text_of(client.sent) == "The"
    assert error_of(client)["code"] == f"rescue_{code}"
    assert client.sent.endswith(DONE)
    assert bench.upstream.asked == []
    assert len(bench.unheard) == 1


async def test_before_the_first_byte_it_ends_with_a_status() -> None:
    """As any answer that there is none to."""
    bench = Bench(engines(Script(REST)), per_minute=0)
    script = Script(event("", logprob=None, number=0))
    client = await served(bench, script)
    assert (client.status, error_of(client)["code"]) == (502, "rescue_budget")


async def test_nobody_else_is_an_error_for_what_is_proven() -> None:
    """What is only doubted passes."""
    for script, code in ((bad("The"), "rescue_no_instance"), (marks("The"), None)):
        bench = Bench()
        [only] = [one for one in bench.router.view.instances if one.instance_id == "a"]
        bench.router.view = PoolView(instances=(only,))
        client = await served(bench, script)
        assert (b"error" in client.sent) == (code is not None)
        if code is not None:
            assert error_of(client)["code"] == code


def marks(*said: str) -> Script:
    """Return a stream into which a mark leaks."""
    leaked = event("<|im_end|>", number=3) + words(" and", " so", " it", " goes", " on", ".")
    end = event("", finish="stop", number=2)
    return Script(opening() + words(*said) + leaked + end + DONE)


async def test_two_that_are_doubted_speak_for_the_request() -> None:
    """The second one's answer passes whole."""
    leaked = [spoken("<|im_end|>"), spoken(" and so it goes on.", finish="stop", number=11), DONE]
    bench = Bench(engines(Script(*leaked)))
    client = await served(bench, marks("The"))
    assert text_of(client.sent) == "The<|im_end|> and so it goes on."


async def test_what_instances_made_of_it_is_evidence() -> None:
    """A few clean tokens tell already, the end once more."""
    rest = b"".join(spoken(f" w{at}", number=30 + at) for at in range(12))
    bench = Bench(engines(Script(rest, spoken(".", finish="stop") + DONE)))
    await served(bench, bad("The"))
    assert [(name, told.finding.name) for _, name, told in bench.heard] == [
        ("b", "CLEAN"),
        ("b", "CLEAN"),
    ]
    assert bench.heard[0][2].reach >= 8
    assert bench.answered == []


async def test_one_that_does_not_take_it_over_is_passed_by() -> None:
    """Whatever its reason; if nobody does, the client reads that."""
    no = Script(b'{"error":{"message":"no","code":400}}', status=400)
    bench = Bench(FakeUpstream({"http://b": [no], "http://c": [no]}))
    client = await served(bench, bad("The"))
    assert error_of(client)["code"] == "rescue_not_taken"


async def test_an_engine_that_minds_what_is_added_is_asked_for_less() -> None:
    """As with every request."""
    fewer = (
        b'{"error":{"message":"logprobs of 4, which is greater than max allowed: 2","code":400}}'
    )
    bench = Bench(engines(Script(fewer, status=400), Script(REST)))
    client = await served(bench, bad("The"))
    assert text_of(client.sent) == "The wide."
    assert bench.upstream.rest()[1]["logprobs"] == 2


async def test_healthy_ones_are_asked_first() -> None:
    """One that is suspect only if there is no other."""
    bench = Bench(FakeUpstream({"http://b": [Script(REST)], "http://c": [Script(REST)]}))
    view = bench.router.view
    doubted = tuple(
        one.model_copy(update={"state": InstanceState.SUSPECT}) if one.instance_id == "b" else one
        for one in view.instances
    )
    bench.router.view = PoolView(1, view.timestamp, doubted)
    await served(bench, bad("The"))
    assert {url for url, *_ in bench.upstream.asked} == {"http://c"}


async def test_other_routes_end_with_their_own_kind_of_error() -> None:
    """Once anything of an answer was shown."""
    kind = b"response.output_text.delta"
    said = b'event: %b\ndata: {"type":"%b","delta":"' % (kind, kind) + b'%b"}\n\n'
    stream = [said % each for each in (b"The sea", b" is", b"<|im_end|>", b" and so it goes on.")]
    bench = Bench(engines(Script(REST)))
    client = await served(bench, Script(*stream), asking(Route.RESPONSES, input="Say"))
    assert b"event: error\ndata: " in client.sent
    assert b"rescue_route" in client.sent
    assert b"im_end" not in client.sent


TORN = (
    "The sea is wide and deep. The land is small and dry. Nobody who has been out there on a day "
    "in autumn would say that the"
)


def torn() -> Script:
    """Return a stream that ends by itself in the middle of a sentence."""
    first, *rest = TORN.split()
    said = words(first, *(f" {word}" for word in rest))
    return Script(opening() + said, event("", finish="stop", number=2), DONE)


async def test_an_end_in_the_middle_of_a_sentence_is_gone_on_from() -> None:
    """Behind its last word, once."""
    bench = Bench(engines(Script(REST)))
    client = await served(bench, torn())
    assert text_of(client.sent) == TORN + " wide."
    assert client.sent.count(b'"finish_reason":"stop"') == 1
    assert b'"reason":"truncated"' in client.sent


@pytest.mark.parametrize(
    ("asked", "terms"),
    [
        (asking(frequency_penalty=1), {}),
        (asking(), {"per_minute": 0}),
        (asking(), {"continuations": 0}),
    ],
)
async def test_an_end_that_cannot_be_gone_on_from_passes(
    asked: Asked, terms: dict[str, Any]
) -> None:
    """It is no proof: its client gets the end that there is."""
    bench = Bench(engines(Script(REST)), **terms)
    client = await served(bench, torn(), asked)
    assert text_of(client.sent) == TORN
    assert client.sent.count(b'"finish_reason":"stop"') == 1
    assert b"error" not in client.sent


@pytest.mark.parametrize("apart", [False, True])
async def test_an_end_from_which_nobody_goes_on_passes(apart: bool) -> None:  # noqa: FBT001
    """Whoever could have is away: its client gets the end that there is, with what follows it."""
    end, usage = event("", finish="stop", number=2), b'data: {"choices":[],"usage":{}}\n\n'
    pieces = (end, usage + DONE) if apart else (end + usage + DONE,)
    first, *rest = TORN.split()
    said = words(first, *(f" {word}" for word in rest))
    others = {"http://b": [unreachable()], "http://c": [unreachable()]}
    client = await served(Bench(FakeUpstream(others)), Script(opening() + said, *pieces))
    assert text_of(client.sent) == TORN
    assert client.sent.count(b'"finish_reason":"stop"') == 1
    assert client.sent.endswith(usage + DONE)
    assert b'"error"' not in client.sent


async def test_a_continuation_that_breaks_takes_the_end_before_it_along() -> None:
    """Its client has got more text than that end stood behind: an error is what is left."""
    bench = Bench(engines(Script(spoken(" wide"), StreamBrokenError("broke off"))), continuations=1)
    client = await served(bench, torn())
    assert b'"error"' in client.sent
    assert b'"finish_reason":"stop"' not in client.sent


async def test_an_end_that_two_instances_choose_is_right() -> None:
    """The second one's passes."""
    end = event("", finish="stop", number=2)
    bench = Bench(engines(Script(spoken("", finish="stop", number=2), DONE)))
    client = await served(bench, torn())
    assert end not in client.sent
    assert text_of(client.sent) == TORN
    assert client.sent.count(b'"finish_reason":"stop"') == 1


async def test_bad_at_two_instances_is_the_requests_doing() -> None:
    """Whatever else would keep a third one from going on: its client is told not to try again."""
    again = [spoken(" x<|im_end|>", number=20), spoken(" and so it goes on.", number=21)]
    bench = Bench(engines(Script(*again)), continuations=1)
    error = error_of(await served(bench, bad("The")))
    assert error["code"] == "rescue_bad_everywhere"
    assert "will not help" in error["message"]
