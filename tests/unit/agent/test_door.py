"""Who is let in: by key, by what it has used, and by path."""

import json

import pytest

from gatemesh_agent.door import Door, Holder, Refusal, is_open, secret_in
from gatemesh_agent.keys import ApiKey, Limits, digest_of


def door_for(limits: Limits = Limits(), key: str = "gm-one") -> Door:  # noqa: B008 (frozen)
    """Return a door with one key."""
    door = Door()
    digest = digest_of(key)
    door.replace({digest: ApiKey("one", digest, limits)})
    return door


def refused(door: Door, now_s: float, key: str | None = "gm-one") -> Refusal:
    """Return why somebody is not let in."""
    found = door.enter(key, now_s)
    assert isinstance(found, Refusal)
    return found


def let_in(door: Door, now_s: float, key: str = "gm-one") -> Holder:
    """Return who is let in."""
    found = door.enter(key, now_s)
    assert isinstance(found, Holder)
    return found


@pytest.mark.parametrize(("secret", "why"), [(None, "no_key"), ("gm-two", "unknown_key")])
def test_without_a_key_nobody_is_let_in(secret: str | None, why: str) -> None:
    """The error is the one that clients' libraries know, and does not repeat the key."""
    found = refused(door_for(), 0.0, secret)
    assert (found.status, found.why, found.retry_after_s) == (401, why, None)
    error = json.loads(found.body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == "invalid_api_key"
    assert b"gm-two" not in found.body


def test_a_door_without_keys_is_closed() -> None:
    """An empty file is no open house."""
    assert refused(Door(), 0.0).why == "unknown_key"


def test_requests_are_counted_as_they_come() -> None:
    """The one past the limit is told when to come again."""
    door = door_for(Limits(requests_per_min=2))
    let_in(door, 0.0)
    let_in(door, 0.0)
    found = refused(door, 0.5)
    assert (found.status, found.why, found.retry_after_s) == (429, "requests", 30)
    error = json.loads(found.body)["error"]
    assert (error["type"], error["code"]) == ("requests", "rate_limit_exceeded")
    let_in(door, 30.0)


def test_tokens_are_counted_when_an_answer_has_ended() -> None:
    """Who has used too many waits until the debt is paid; that costs no request."""
    door = door_for(Limits(requests_per_min=2, tokens_per_min=60))
    holder = let_in(door, 0.0)
    assert holder.tokens is not None
    holder.tokens.use(90)
    assert refused(door, 0.0).why == "tokens"
    assert refused(door, 0.0).retry_after_s == 31
    let_in(door, 31.0)


def test_a_changed_file_forgives_nothing() -> None:
    """What was used counts on; only another limit begins anew."""
    limits = Limits(requests_per_min=1)
    door = door_for(limits)
    let_in(door, 0.0)
    digest, other = digest_of("gm-one"), digest_of("gm-two")
    door.replace({digest: ApiKey("one", digest, limits), other: ApiKey("two", other, limits)})
    assert refused(door, 1.0).why == "requests"
    let_in(door, 1.0, "gm-two")
    door.replace({other: ApiKey("two", other, limits)})
    assert refused(door, 2.0).why == "unknown_key"


@pytest.mark.parametrize(
    ("authorization", "api_key", "secret"),
    [
        ("Bearer gm-one", None, "gm-one"),
        ("bearer  gm-one ", None, "gm-one"),
        (None, "gm-one", "gm-one"),
        ("Basic abc", "gm-one", "gm-one"),
        ("Bearer ", None, None),
        (None, None, None),
    ],
)
def test_a_key_comes_in_either_header(
    authorization: str | None, api_key: str | None, secret: str | None
) -> None:
    """OpenAI's clients send the one, Anthropic's the other."""
    assert secret_in(authorization, api_key) == secret


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/chat/completions", "/v1/completions", "/v1/responses/resp_1", "/v1/messages"),
        *("/v1/models", "/v1/models/org/model-1.5:free", "/health", "/tokenize", "/v2/rerank"),
    ],
)
def test_paths_for_clients_are_open(path: str) -> None:
    """Names of models have slashes, dots and colons."""
    assert is_open(path)


@pytest.mark.parametrize(
    "path",
    [
        *("/metrics", "/sleep", "/wake_up", "/reset_prefix_cache", "/collective_rpc", "/docs"),
        *("/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/start_profile", "/", "/v1", "/v1/"),
        *("/v1/../sleep", "/v1/%2e%2e/sleep", "/v1//../sleep", "//sleep", "/v1/models/..", "/v1/."),
        *("/v1/models/a\\..\\..\\sleep", "/sim/fault", "/healthz", "/v1/./load_lora_adapter"),
        "/v1//load_lora_adapter",
    ],
)
def test_what_is_for_operators_is_closed(path: str) -> None:
    """However it is written."""
    assert not is_open(path)
