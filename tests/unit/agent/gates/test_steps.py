"""Steps are read from every shape that engines send."""

from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.l3_distribution import DistributionGate
from gatemesh_agent.gates.steps import TokenStep, id_in, id_of, steps_of_chat, steps_of_completion
from gatemesh_common.gates import Ending

JSON: st.SearchStrategy[object] = (
    st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.just([1]) | st.just({})
)
ENTRY = st.dictionaries(st.sampled_from(["token", "logprob", "top_logprobs"]), JSON)
TOPS = ENTRY.map(lambda entry: {**entry, "top_logprobs": [entry, 3]})


def test_chat() -> None:
    """The sampled token comes first among the candidates."""
    entry = {
        "token": "a",
        "logprob": -1.5,
        "top_logprobs": [{"token": "a", "logprob": -1.5}, {"token": "b", "logprob": -0.5}],
    }
    assert steps_of_chat({"content": [entry]}) == (TokenStep("a", -1.5, (-1.5, -0.5)),)


def test_chat_with_null_and_without_fields() -> None:
    """Null is a figure that is no number; an entry without figure is no step."""
    content = [{"token": "a", "logprob": None, "top_logprobs": [{"logprob": None}]}, {}, None]
    assert steps_of_chat({"content": content}) == (TokenStep("a", None, (None,)),)
    assert steps_of_chat(None) == ()
    assert steps_of_chat({"content": None}) == ()


def test_completion() -> None:
    """Candidates are keyed by text."""
    logprobs = {
        "tokens": ["a", "b"],
        "token_logprobs": [None, -0.5],
        "top_logprobs": [None, {"b": -0.5, "c": -2.0}],
    }
    assert steps_of_completion(logprobs, top_k=2) == (
        TokenStep("a", None),
        TokenStep("b", -0.5, (-0.5, -2.0)),
    )


def test_lost_candidates_are_noticed() -> None:
    """Ids that decode alike collide, and a likely one may be missing."""
    tops = [{"b": -0.5, "\ufffd": -2.0}, {"b": -0.5}, {"": -0.5, "c": -2.0}]
    logprobs = {"tokens": ["b"] * 3, "token_logprobs": [-0.5] * 3, "top_logprobs": tops}
    assert [step.complete for step in steps_of_completion(logprobs, 2)] == [False, False, False]


@given(st.lists(ENTRY | TOPS | JSON, max_size=3))
def test_odd_entries(content: list[object]) -> None:
    """Whatever an engine writes there, reading and judging it does not raise."""
    gate = DistributionGate(RequestContext())
    gate.feed_steps(steps_of_chat({"content": content}))
    lists = {"tokens": content, "token_logprobs": content, "top_logprobs": content}
    gate.feed_steps(steps_of_completion(lists))
    gate.finish(Ending("stop"))


def test_missing_lists() -> None:
    """Every list is optional."""
    assert steps_of_completion({}) == ()
    assert steps_of_completion(None) == ()
    assert steps_of_completion({"token_logprobs": [-1.0]}) == (TokenStep("", -1.0),)


def test_chat_by_id() -> None:
    """The id stands where the text would; the text is in the bytes."""
    entry = {"token": "token_id:17", "logprob": -0.5, "bytes": [195, 169], "top_logprobs": []}
    assert steps_of_chat({"content": [entry]}) == (TokenStep("é", -0.5, token_id=17),)
    odd: object
    for odd in (None, [300], ["a"], {}):
        [step] = steps_of_chat({"content": [{**entry, "bytes": odd}]})
        assert (step.text, step.token_id) == ("", 17)


def test_completion_by_id() -> None:
    """Ids do not collide; each step has its part of the text."""
    logprobs = {
        "tokens": ["token_id:1", "token_id:2"],
        "token_logprobs": [-0.5, -0.5],
        "top_logprobs": [{"token_id:1": -0.5, "token_id:9": -2.0}, None],
    }
    assert steps_of_completion(logprobs, 2, "abcd") == (
        TokenStep("ab", -0.5, (-0.5, -2.0), token_id=1),
        TokenStep("cd", -0.5, token_id=2),
    )


@given(st.text() | st.integers() | st.none())
def test_what_is_no_id_is_text(token: object) -> None:
    """Whatever stands after the mark."""
    written = f"token_id:{token}"
    [step] = steps_of_chat({"content": [{"token": written, "logprob": -1.0}]})
    assert step.token_id is None or step.token_id == int(str(token))


def test_candidates_that_cannot_be_read_are_left_out() -> None:
    """One odd candidate takes nothing from the others; one without a figure counts as null."""
    top = [{"logprob": -0.5}, {"token": "b"}, 7, {"logprob": "low"}, {"logprob": -2}]
    entry = {"token": "a", "logprob": -0.5, "top_logprobs": top}
    assert steps_of_chat({"content": [entry]}) == (TokenStep("a", -0.5, (-0.5, None, -2)),)


def test_ids_are_remembered_and_no_text_is() -> None:
    """What an answer says is not kept when it has ended."""
    id_in.cache_clear()
    said = [
        id_of(token) for token in ("token_id:17", "token_id:17", "a word", "token_id:" + "9" * 99)
    ]
    assert said == [17, 17, None, None]
    assert id_in.cache_info().currsize == 1
