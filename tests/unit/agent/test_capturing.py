"""Figures always; text by policy, and no secret with it."""

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict

from gatemesh_agent.attribution import ClientRequest
from gatemesh_agent.capturing import Place, Subject, Terms, capture_of, prompt_words, sampling_of
from gatemesh_agent.dialects import read_choices
from gatemesh_agent.recent import Reach, Window
from gatemesh_agent.reporting import Life, Origin
from gatemesh_agent.requests import Route, understand
from gatemesh_agent.traffic import Exchange
from gatemesh_agent.upstream import Order
from gatemesh_common.captures import Capture, CaptureTerms
from gatemesh_common.messages import Span

from .test_capture_window import chat
from .test_judging import NOON
from .test_recent import verdict

PLACE = Place("agent-0", "chat", {"host": "h1"}, "0.32.0")
SECRETS = (
    "alice.b@example.org",
    "4111 1111 1111 1111",
    "sk-abcdefghijklmnopqrstuv",
    "+49 170 1234567",
)
REQUEST = b"""{"model": "qwen", "temperature": 0.7, "stop": ["words"], "stream": true,
 "messages": [{"role": "user", "content": "Write to alice.b@example.org, please."}]}"""


def terms(**more: Any) -> Terms:
    """Return terms of a policy."""
    return Terms.of(CaptureTerms.model_validate({"timestamp": NOON, "pool": "chat"} | more))


def subject(pieces: list[str], finish: str | None = None, begin: int = 0, **more: Any) -> Subject:
    """Return a window that begins with one of an answer's pieces."""
    asked = understand(Route.CHAT, more.pop("request", REQUEST))
    order = Order("POST", "/v1/chat/completions", CIMultiDict(), asked.raw)
    life = Life("engine-0", 3, "m-1", numbered=True)
    end = Reach(len(pieces), len(pieces), sum(map(len, pieces)))
    window = Window(
        verdict=verdict(**more),
        before=tuple(chat(piece, piece) for piece in pieces[begin:]),
        after=(),
        at=end,
        seen=end,
        running={"L3": {"max_entropy_nats": 1.25, "odd": math.nan}, "L2": {"odd": math.inf}},
        read=lambda fields: read_choices(fields, None),
    )
    exchange = Exchange(ClientRequest(asked, Origin("r"), order), life, streamed=True)
    return Subject(window, exchange, tuple(pieces), finish)


def words(capture: Capture) -> str:
    """Return all text of a capture."""
    texts = capture.texts
    return (
        "" if texts is None else "\n".join([*texts.tokens, texts.prompt or "", texts.answer or ""])
    )


def test_by_default_there_are_figures_only() -> None:
    """No text, no token ids, and nothing of the request but numbers."""
    span = Span(token_start=1, token_end=2)
    found = capture_of(subject(["Hello ", "world"], span=span), terms(), PLACE)
    assert (found.text_policy, found.texts, found.text_withheld) == ("none", None, None)
    assert [(one.n, one.logprob, one.fault) for one in found.steps] == [
        (0, -0.5, False),
        (1, -0.5, True),
    ]
    written = found.model_dump_json()
    assert not [word for word in ("Hello", "world", "alice", "words") if word in written]
    assert found.sampling == {"temperature": 0.7, "stream": True}
    assert found.gates == {"L3": {"max_entropy_nats": 1.25}}
    assert (found.model, found.engine_version, found.labels) == ("qwen", "0.32.0", {"host": "h1"})
    assert (found.steps_seen, found.chars_seen) == (2, 11)


def test_a_window_has_the_text_of_its_steps() -> None:
    """And neither prompt nor the rest of the answer."""
    found = capture_of(subject(["One ", "two ", "three."], "stop", 1), terms(text="window"), PLACE)
    assert found.texts is not None
    assert found.texts.tokens == ("two ", "three.")
    assert (found.texts.prompt, found.texts.answer, found.texts.is_cut) == (None, None, False)


def test_all_of_it_only_where_the_policy_says_so() -> None:
    """Redacted, too."""
    pieces = ["Dear ", "alice.b@exam", "ple.org", ", hello."]
    found = capture_of(subject(pieces, "stop"), terms(text="full"), PLACE)
    assert found.texts is not None
    assert found.texts.answer == "Dear [email], hello."
    assert found.texts.prompt == "user: Write to [email], please."
    assert found.texts.tokens == ("Dear ", "[email]", "", ", hello.")
    assert found.redactions == {"email": 2}


def test_own_rules_strike_as_well() -> None:
    """By their name."""
    own = terms(text="window", rules=[{"name": "customer", "pattern": r"C-\d+"}])
    found = capture_of(subject(["C-", "17 is ", "due."], "stop"), own, PLACE)
    assert found.texts is not None
    assert found.texts.tokens == ("[customer]", " is ", "due.")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"rules": [{"name": "broken", "pattern": "("}]}, "rule_unusable"),
        ({"rules": [{"name": "slow", "pattern": r"(?:a+a+)+\d"}]}, "rule_unusable"),
    ],
)
def test_where_a_rule_cannot_be_used_no_text_leaves(more: dict[str, Any], why: str) -> None:
    """Figures do."""
    found = capture_of(subject(["a" * 3000], "stop"), terms(text="full", **more), PLACE)
    assert (found.text_withheld, found.texts) == (why, None)
    assert found.steps


def test_what_was_closed_before_the_policy_came_stays_figures() -> None:
    """Its text was never kept."""
    found = capture_of(
        Subject(subject(["a"]).window, subject(["a"]).exchange, None), terms(text="full"), PLACE
    )
    assert (found.text_withheld, found.texts) == ("late", None)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SECRETS), st.sampled_from(["window", "full"]), st.data())
def test_no_split_of_a_stream_lets_a_secret_through(
    secret: str, policy: str, data: st.DataObject
) -> None:
    """Whatever the tokens, wherever the window begins, and wherever the answer was cut."""
    around = st.text(alphabet="abc ,.\n中", max_size=20)
    text = f"{data.draw(around)} {secret} {data.draw(around)}"
    length = data.draw(st.integers(min_value=0, max_value=len(text)))
    marks = data.draw(st.sets(st.integers(min_value=1, max_value=len(text)), max_size=12))
    bounds = [0, *sorted(mark for mark in marks if mark < length), length]
    pieces = [text[a:b] for a, b in pairwise(bounds) if b > a]
    begin = data.draw(st.integers(min_value=0, max_value=len(pieces)))
    finish = "stop" if length == len(text) else None
    found = capture_of(subject(pieces, finish, begin), terms(text=policy), PLACE)
    tokens = "".join(found.texts.tokens if found.texts else ())
    for shown in (tokens, words(found)):
        for size in range(6, len(secret) + 1):
            assert secret[:size] not in shown
            assert secret[-size:] not in shown


@pytest.mark.parametrize("policy", ["window", "full"])
@pytest.mark.parametrize("piece", ["words ", "漢字", "\x01"])
def test_text_is_no_more_than_the_policy_allows(policy: str, piece: str) -> None:
    """However long prompt, answer or a single token."""
    long = b'{"messages": [{"role": "user", "content": "%b"}]}' % (b"go on " * 60_000)
    parts = [piece * 400 for _ in range(40)]
    found = capture_of(
        subject(parts, "stop", request=long), terms(text=policy, max_bytes=2048), PLACE
    )
    assert found.texts is not None
    assert found.texts.is_cut
    assert len(words(found).replace("\n", "").encode()) <= 2048
    assert len(found.texts.tokens) == len(found.steps) == 40


def test_a_lone_surrogate_cannot_stop_a_capture() -> None:
    """An engine may write what no message can carry."""
    found = capture_of(subject(["a\ud800b"], "stop"), terms(text="full"), PLACE)
    assert found.texts is not None
    assert found.texts.answer == "a?b"
    Capture.model_validate_json(found.model_dump_json())


def test_a_prompt_is_its_words() -> None:
    """Of every shape; no pictures, no ids."""
    image = {"type": "image_url", "image_url": {"url": "data:secret"}}
    parts = [{"type": "text", "text": "see"}, image]
    prompt = ["be kind", [{"role": "user", "content": parts}, {"role": "assistant"}, [1, 2], "end"]]
    assert list(prompt_words(prompt)) == ["be kind", "user: see", "end"]


def test_sampling_is_numbers() -> None:
    """Words of a request are text, and an absurd number is none."""
    body = {"temperature": 0, "top_p": "high", "seed": 10**400, "stop": "x", "ignore_eos": True}
    assert sampling_of(body) == {"temperature": 0, "ignore_eos": True}
