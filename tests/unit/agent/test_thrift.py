"""How many log probabilities are asked for clients' requests."""

from collections.abc import Callable
from random import Random

import pytest
from tests.unit.agent.test_sampling import verdict

from gatemesh_agent.reporting import Life
from gatemesh_agent.requests import Route, understand
from gatemesh_agent.settings import AgentSettings
from gatemesh_agent.thrift import Busyness, ClientWishes, Thrift, ThriftTerms
from gatemesh_agent.wishes import Wish, Wishes
from gatemesh_common.messages import Attribution

LIFE = Life("e", 1, "m", numbered=True)
MOST = Wish(20, by_id=True, probe_id="p")


class Setting:
    """A clock, and what is busy and suspect."""

    now_s = 0.0
    busy = False
    suspect = False

    def thrift(self, **terms: float | None) -> Thrift:
        """Return thrift under these terms."""
        return Thrift(
            ThriftTerms(**terms),  # type: ignore[arg-type]
            rng=Random(1),
            is_busy=lambda: self.busy,
            is_suspect=lambda _: self.suspect,
            clock_s=lambda: self.now_s,
        )


def share_asked(thrift: Thrift) -> float:
    """Return the share of 2,000 requests that are asked."""
    return sum(thrift.lessened(MOST, LIFE).count > 0 for _ in range(2000)) / 2000


def test_by_default_every_request_is_asked_for_all() -> None:
    """Nothing is left out that nobody chose to leave out."""
    setting = Setting()
    setting.busy = True
    assert setting.thrift().lessened(MOST, LIFE) == MOST


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_share_of_the_requests_is_asked(share: float) -> None:
    """The others keep the id by which the engine's plugin reports."""
    thrift = Setting().thrift(share=share)
    assert share_asked(thrift) == pytest.approx(share, abs=0.03)
    assert thrift.lessened(MOST, LIFE).probe_id == "p"


def test_an_instance_under_suspicion_is_never_spared() -> None:
    """Suspected by the manager, or failed by a gate within the last minute."""
    setting = Setting()
    thrift = setting.thrift(share=0.0)
    setting.suspect = True
    assert share_asked(thrift) == 1
    setting.suspect = False
    assert share_asked(thrift) == 0
    thrift.heed(verdict(Attribution.REQUEST))
    assert share_asked(thrift) == 0
    thrift.heed(verdict(Attribution.INSTANCE))
    assert share_asked(thrift) == 1
    setting.now_s = 60.1
    assert share_asked(thrift) == 0


def test_a_busy_agent_asks_for_fewer() -> None:
    """Never for more than it would have asked."""
    setting = Setting()
    thrift = setting.thrift(busy_count=10)
    assert thrift.lessened(MOST, LIFE).count == 20
    setting.busy = True
    assert thrift.lessened(MOST, LIFE).count == 10
    assert thrift.lessened(Wish(5), LIFE).count == 5
    assert thrift.lessened(Wish(0), LIFE).count == 0


def clock(*times: float) -> Callable[[], float]:
    """Return a clock that shows these times, one a look."""
    shown = iter(times)
    return lambda: next(shown)


def test_who_is_busy_is_calm_again_only_well_below_the_limit() -> None:
    """Looked at once a second."""
    busy = Busyness(0.8, clock(0, 0.5, 1, 2, 3), clock(0, 0.9, 1.6, 2.1))
    assert [busy() for _ in range(4)] == [False, True, True, False]


def test_what_an_engine_refuses_is_learnt_by_all() -> None:
    """Second opinions ask for all, and never again for what was refused a client."""
    wishes = Wishes(20)
    sampled = ClientWishes(wishes, Setting().thrift(share=0.0))
    asked = understand(Route.CHAT, b'{"model":"m","messages":[]}')
    assert sampled.of(asked, LIFE).count == 0
    assert wishes.of(asked, LIFE).count == 20
    error = b'{"error":{"message":"return_tokens_as_token_ids is unknown","type":"BadRequest"}}'
    assert sampled.lessened(MOST, LIFE, error) == wishes.lessened(MOST, LIFE, error)


def test_an_agent_that_withholds_measures_all() -> None:
    """What is not measured cannot be withheld."""
    with pytest.raises(ValueError, match="LOGPROBS_SHARE"):
        AgentSettings.model_validate({"guard": "shield", "logprobs_share": 0.5})
    given = {"guard": "observe", "logprobs_share": 0.5}
    assert AgentSettings.model_validate(given).logprobs_share == 0.5
