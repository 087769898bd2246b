"""How many texts the verifier reads, and which it learns from."""

from tests.unit.shadow.parts import sample_of

from gatemesh_common.messages import Reason
from gatemesh_shadow.batching import Batcher
from gatemesh_shadow.errors import ModelUnavailableError
from gatemesh_shadow.plausibility import VerifierBaseline
from gatemesh_shadow.verifying import Verifying


class Hands:
    """A clock that is set by hand."""

    now_s = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now_s


def verifying_of(clock: Hands, per_s: float = 1.0) -> Verifying:
    """One that finds every text equally likely."""
    return Verifying(Batcher(lambda texts: [(3.0, 64)] * len(texts), 8, 0.0), per_s, clock)


async def test_its_rate() -> None:
    """One per second; what comes sooner is left out."""
    clock = Hands()
    clock.now_s = 100.0
    verifying, baseline = verifying_of(clock), VerifierBaseline()
    judged = [await verifying.judge(sample_of(), baseline, learn=True) for _ in range(3)]
    assert [one is not None for one in judged] == [True, False, False]
    clock.now_s = 101.0
    assert await verifying.judge(sample_of(), baseline, learn=True) is not None


async def test_it_learns_from_good_answers_only() -> None:
    """The caller knows which they are."""
    clock = Hands()
    verifying, baseline = verifying_of(clock), VerifierBaseline()
    await verifying.judge(sample_of(), baseline, learn=False)
    assert not baseline.known
    clock.now_s = 1.0
    judgement = await verifying.judge(sample_of(), baseline, learn=True)
    assert judgement is not None
    assert judgement.reason is Reason.WARMING
    assert [list(values) for values in baseline.known.values()] == [[3.0]]


async def test_empty_texts_are_others_to_judge() -> None:
    """Nothing to read."""
    assert (
        await verifying_of(Hands()).judge(sample_of(text=" "), VerifierBaseline(), learn=True)
        is None
    )


async def test_a_model_that_is_lost_is_done_without() -> None:
    """The sample is no poison."""

    def fail(_texts: object) -> list[tuple[float, int]]:
        raise ModelUnavailableError("gone")

    verifying = Verifying(Batcher(fail, 8, 0.0), 1e9, Hands())
    assert await verifying.judge(sample_of(), VerifierBaseline(), learn=True) is None
    assert verifying.lost
