"""The demo's prompts are varied and the same in every run."""

from gatemesh_mesh.demo import load_prompts


def test_prompts_are_varied_and_bilingual() -> None:
    """Condition A counts distinct prompts, and both languages are on the way."""
    prompts = load_prompts()
    assert len(set(prompts)) == len(prompts) >= 30
    assert sum(any("\u4e00" <= sign <= "\u9fff" for sign in prompt) for prompt in prompts) >= 5


def test_prompts_come_in_the_same_order() -> None:
    """Two runs of the demo can be compared."""
    assert load_prompts() == load_prompts()
