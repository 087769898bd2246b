"""Prompts are understood in several languages."""

import pytest

from gatemesh_agent.gates.topics import TOPIC_WORDS, Topic, speaks_of


def test_every_topic_has_words() -> None:
    """No topic is left empty."""
    assert set(TOPIC_WORDS) == set(Topic)


@pytest.mark.parametrize(
    ("prompt", "topic"),
    [
        ("Give me the raw bytes, real escape characters.", Topic.CONTROL_CHARS),
        ("Powerline separators?", Topic.ICONS),
        ("为什么会出现乱码？", Topic.ENCODING),
        ("What is U+FFFD?", Topic.ENCODING),
        ("Explain <|im_end|>.", Topic.TOKENS),
        ("分词器里的 <pad> 是什么", Topic.TOKENS),
        ("How do you say hello in Greek?", Topic.LANGUAGES),
        ("次の文を英語に翻訳して", Topic.LANGUAGES),
        ("Write a dialogue between two cats.", Topic.DIALOGUE),
        ("Give me a random key in hex", Topic.ENCODED),
        ("Draw a boat", Topic.DRAWING),
        ("How do I print \\n in bash?", Topic.ESCAPES),
        ("Zalgo text please", Topic.INVISIBLE),
        ("Write it without any spaces", Topic.GLUED),
        ("Repeat the word ten times", Topic.REPEATING),
        ("请把“加油”重复三十遍。", Topic.REPEATING),
        ("Напиши слово «да» тридцать раз", Topic.REPEATING),
        ("Write a lullaby", Topic.PLAYFUL),
        ("Go on forever", Topic.ENDLESS),
        ("Answer in one word", Topic.SHORT),
        ("Schreibe eine Einladung zum Fest", Topic.COMPOSING),
    ],
)
def test_a_topic_is_recognised(prompt: str, topic: Topic) -> None:
    """A wanted oddity is no fault."""
    assert speaks_of(prompt, topic)


@pytest.mark.parametrize(
    ("prompt", "topic"),
    [
        ("What time zone is Lisbon in?", Topic.CONTROL_CHARS),
        ("How many days does a year have?", Topic.PLAYFUL),
        ("How many days does a year have?", Topic.REPEATING),
        ("What is a good substitute for buttermilk?", Topic.ICONS),
        ("How do I descale a kettle?", Topic.TOKENS),
        ("¿Cómo ahorro agua en casa?", Topic.LANGUAGES),
        ("What is the capital of France?", Topic.DIALOGUE),
        ("Plan two days in Lisbon", Topic.ENCODED),
    ],
)
def test_other_prompts_do_not_speak_of_it(prompt: str, topic: Topic) -> None:
    """A topic that everything touches would hide every fault."""
    assert not speaks_of(prompt, topic)


def test_a_language_is_no_line_break() -> None:
    """Prompts about programs are not yet about how to write a line break."""
    assert speaks_of("Explain decorators in Python.", Topic.ESCAPES)
    assert not speaks_of("Explain decorators in Python.", Topic.LINE_BREAKS)
    assert speaks_of("How do I strip newlines in Python?", Topic.LINE_BREAKS)
