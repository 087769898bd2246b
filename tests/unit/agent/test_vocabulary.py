"""Who is believed about the size of a vocabulary, and how often anybody is asked."""

import pytest

from gatemesh_agent.reporting import Life
from gatemesh_agent.vocabulary import Vocabulary, size_in

VLLM = (
    b'{"error":{"message":"token_id(s) [2147483646] in logit_bias contain out-of-vocab token ids. '
    b'Vocabulary size: 49152","type":"BadRequestError","param":"logit_bias","code":400}}'
)
LIFE = Life("engine-0", 1, None, numbered=True)
NEXT = Life("engine-0", 2, None, numbered=True)


class Engine:
    """Answers with a size, and counts."""

    def __init__(self, size: int | None) -> None:
        self.size = size
        self.asked: list[tuple[str, str]] = []

    async def ask(self, base_url: str, model: str) -> int | None:
        """Answer."""
        self.asked.append((base_url, model))
        return self.size


def vocabulary(engine: Engine, setting: int | None = None) -> Vocabulary:
    """A fresh one, in front of one instance."""
    addresses = {"engine-0": "http://e"}
    return Vocabulary(engine.ask, addresses.get, lambda _model: setting)


async def test_each_life_is_asked_once_for_each_model() -> None:
    """A new life may serve another vocabulary."""
    engine = Engine(49_152)
    sizes = vocabulary(engine)
    for life, model in ((LIFE, "m"), (LIFE, "m"), (NEXT, "m"), (LIFE, "n"), (LIFE, "")):
        sizes.learn(life, model)
    sizes.learn(Life("gone", 1, None, numbered=True), "m")
    await sizes.settle()
    assert engine.asked == [("http://e", "m"), ("http://e", "m"), ("http://e", "n")]
    assert sizes.size("m") == 49_152
    await sizes.stop()


async def test_the_engine_is_believed_before_all_others() -> None:
    """Then what a plugin measured, then the setting."""
    sizes = vocabulary(Engine(100), setting=7)
    assert sizes.size("m") == 7
    sizes.hear("m", 50)
    assert sizes.size("m") == 50
    sizes.learn(LIFE, "m")
    await sizes.settle()
    assert sizes.size("m") == 100


@pytest.mark.parametrize("answer", [None, 0, 1])
async def test_an_engine_that_says_nothing_changes_nothing(answer: int | None) -> None:
    """It may not check the field, or be away."""
    sizes = vocabulary(Engine(answer), setting=7)
    sizes.learn(LIFE, "m")
    await sizes.settle()
    assert sizes.size("m") == 7


@pytest.mark.parametrize(
    ("error", "size"),
    [(VLLM, 49_152), (b"vocabulary size is 32000.", 32_000), (b"no such model", None), (b"", None)],
)
def test_the_size_is_read_from_the_refusal(error: bytes, size: int | None) -> None:
    """As vLLM words it."""
    assert size_in(error) == size
