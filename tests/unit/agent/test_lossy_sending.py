"""What may be lost never piles up."""

from typing import Any

from tests.unit.agent.test_sampling import NOON, answer

from gatemesh_agent.lossy_sending import MOST_WAITING, LossySender
from gatemesh_agent.metrics import SAMPLES_DROPPED
from gatemesh_agent.sampling import sample_of
from gatemesh_common.errors import BrokerUnavailableError
from gatemesh_common.messages import ShadowSample


class FakePublisher:
    """Keeps what it is given, or refuses."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.refuses = refuses
        self.sent: list[tuple[str, str, bytes]] = []

    async def publish_raw(self, body: Any, exchange: str, key: str, *, mandatory: bool) -> None:
        """Take one."""
        if self.refuses:
            raise BrokerUnavailableError("full")
        assert mandatory
        self.sent.append((exchange, key, body.body))


def sample() -> ShadowSample:
    """Return one sample."""
    return sample_of(answer(), "random", "agent-0", "p", NOON)


async def test_samples_go_to_their_exchange() -> None:
    """In order."""
    publisher = FakePublisher()
    sender = LossySender(publisher, "agent", SAMPLES_DROPPED)  # type: ignore[arg-type]
    sender.put(sample())
    assert await sender.send_one()
    [(exchange, key, body)] = publisher.sent
    assert (exchange, key) == ("vllm_shadow", "sample.v1.p")
    assert ShadowSample.model_validate_json(body).text == "Hi."


async def test_what_the_broker_refuses_is_dropped() -> None:
    """Nothing is kept for later."""
    sender = LossySender(FakePublisher(refuses=True), "agent", SAMPLES_DROPPED)  # type: ignore[arg-type]
    sender.put(sample())
    assert not await sender.send_one()
    assert sender.waiting == 0


async def test_the_oldest_go_when_too_many_wait() -> None:
    """A slow broker costs samples, never memory."""
    sender = LossySender(FakePublisher(), "agent", SAMPLES_DROPPED)  # type: ignore[arg-type]
    for _ in range(MOST_WAITING + 5):
        sender.put(sample())
    assert sender.waiting == MOST_WAITING
