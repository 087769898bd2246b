"""Which answer a request gets."""

from collections.abc import Callable, Sequence

import orjson
import pytest

from gatemesh_engine_sim.answering import Plan, plan_answer
from gatemesh_engine_sim.fault_plan import FaultSpec
from gatemesh_engine_sim.faults import Delivery, fault_table
from gatemesh_engine_sim.generation import Emission
from gatemesh_engine_sim.intake import Asked
from gatemesh_engine_sim.library import Library

Ask = Callable[..., Asked]


def text(choice: Sequence[Emission]) -> str:
    """What the client reads."""
    return "".join(one.text for one in choice)


@pytest.fixture
def plan(library: Library) -> Callable[..., Plan]:
    """Plans with the whole fault table."""
    table = fault_table(library)

    def planned(asked: Asked, spec: FaultSpec | None = None) -> Plan:
        return plan_answer(asked, spec, table, library)

    return planned


def test_logprobs_do_not_change_the_answer(ask: Ask, plan: Callable[..., Plan]) -> None:
    """A proxy that asks for them gets the text the client would have got."""
    plain, asked = plan(ask()), plan(ask(logprobs=True, top_logprobs=20, stream=True))
    assert text(plain.choices[0]) == text(asked.choices[0])


def test_seed_and_choice_change_it(ask: Ask, plan: Callable[..., Plan]) -> None:
    """Several choices are several answers."""
    texts = {text(plan(ask(seed=seed)).choices[0]) for seed in range(20)}
    texts |= {text(choice) for choice in plan(ask(n=4)).choices}
    assert len(texts) > 10


def test_known_question(ask: Ask, plan: Callable[..., Plan]) -> None:
    """Answered right, in every choice."""
    asked = ask(messages=[{"role": "user", "content": "What is 1+1?"}], n=2)
    assert [text(choice) for choice in plan(asked).choices] == ["2", "2"]


@pytest.mark.parametrize(
    "response_format",
    [
        {"type": "json_object"},
        {
            "type": "json_schema",
            "json_schema": {"schema": {"properties": {"a": {"type": "integer"}}}},
        },
    ],
)
def test_json_where_demanded(
    ask: Ask, plan: Callable[..., Plan], response_format: dict[str, object]
) -> None:
    """Valid, whatever the question."""
    choice = plan(ask(response_format=response_format)).choices[0]
    assert isinstance(orjson.loads(text(choice)), dict)


def test_fault_keeps_the_limit(ask: Ask, plan: Callable[..., Plan]) -> None:
    """Garbage to the last token."""
    choice = plan(ask(max_tokens=7), FaultSpec(fault="nan", after_tokens=2)).choices[0]
    assert len(choice) == 7
    assert choice[-1].finish_reason == "length"
    assert [one.step.is_finite for one in choice] == [True] * 2 + [False] * 5


def test_fault_repeats_itself(ask: Ask, plan: Callable[..., Plan]) -> None:
    """The same request is spoilt in the same way."""
    spec = FaultSpec(fault="salad")
    first, second = plan(ask(), spec), plan(ask(), spec)
    assert text(first.choices[0]) == text(second.choices[0])


def test_delivery_is_passed_on(ask: Ask, plan: Callable[..., Plan]) -> None:
    """Together with its onset."""
    hang = plan(ask(), FaultSpec(fault="hang", after_tokens=3))
    assert (hang.delivery, hang.after_tokens, hang.refuses) == (Delivery.HANG, 3, False)
    assert plan(ask(), FaultSpec(fault="http500")).refuses
    assert not plan(ask(), FaultSpec(fault="http500", after_tokens=1)).refuses
