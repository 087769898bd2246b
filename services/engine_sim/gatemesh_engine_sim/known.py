"""Right answers to the questions people and probes like to ask."""

# Chinese answers end with full-width marks.
# ruff: noqa: RUF001

import operator
import re
from collections.abc import Callable
from typing import Any

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "plus": operator.add,
    "加": operator.add,
    "-": operator.sub,
    "minus": operator.sub,
    "减": operator.sub,
    "*": operator.mul,
    "x": operator.mul,
    "×": operator.mul,
    "times": operator.mul,
    "乘": operator.mul,
}

SUM = re.compile(r"(\d{1,6})\s*(\+|plus|加|-|minus|减|\*|x|×|times|乘)\s*(\d{1,6})")
ECHO = re.compile(
    r"^(?:please )?(?:say|repeat|reply with|answer with|respond with)\b"
    r"[^\"'“]*[\"'“]([^\"'”]{1,200})[\"'”]",
    re.IGNORECASE,
)

ANSWERS: tuple[tuple[str, str], ...] = (
    (r"function add\(a, ?b\)", "def add(a, b):\n    return a + b"),
    (r"function product\(a, ?b\)", "def product(a, b):\n    return a * b"),
    (r'"name" set to "ada"', '{"name": "Ada", "age": 36}'),
    (r"请原样重复：\"编号a7\"", "编号A7"),
    (r"\bword: pong\b", "PONG"),
    (r"comes after 7", "8"),
    (r"谢谢", "Thank you."),
    (r"bonjour", "Hello."),
    (r"你好，?世界", "Hello world."),
    (r"hello,? world.*(chinese|中文)", "你好，世界。"),
    (r"translate.*(good morning).*chinese", "早上好。"),
    (r"capital (city )?of france|france's capital|法国的首都", "Paris."),
    (r"capital (city )?of germany", "Berlin."),
    (r"capital (city )?of japan|日本的首都", "Tokyo."),
    (r"capital (city )?of italy", "Rome."),
    (r"capital (city )?of china", "Beijing."),
    (r"中国的首都", "北京。"),
    (r"水果", "苹果。"),
    (r"\bfruit", "Apple."),
    (r"\b(name|give|tell)\b.*\banimal", "A dog."),
    (r"colou?r.*\bsky\b|\bsky\b.*colou?r", "Blue."),
    (r"天空.*颜色", "蓝色。"),
    (r"days.*\bweek\b", "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday."),
    (r"opposite of hot", "Cold."),
    (r"一加一", "2"),
    (r"^ping\b", "Pong."),
)
"""Pattern in the last message (in lower case), and the answer; the first match counts."""

TABLE = tuple((re.compile(pattern), answer) for pattern, answer in ANSWERS)


def known_answer(question: str) -> str | None:
    """The right answer where the question, or its last line, is a known one."""
    last = question.strip().rpartition("\n")[2]
    return _known(last) or (_known(question) if last != question else None)


def _known(question: str) -> str | None:
    echo = ECHO.search(question)
    if echo:
        return echo[1]
    lowered = question.lower()
    for pattern, answer in TABLE:
        if pattern.search(lowered):
            return answer
    return _computed(lowered)


def _computed(question: str) -> str | None:
    found = SUM.search(question)
    return str(OPERATIONS[found[2]](int(found[1]), int(found[3]))) if found else None


def example_of(schema: dict[str, Any]) -> Any:
    """A value that a JSON schema accepts: the first choice of everything."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    if kind == "object":
        fields = schema.get("properties", {})
        return {name: example_of(inner) for name, inner in fields.items()}
    if kind == "array":
        return [example_of(schema.get("items", {"type": "string"}))]
    return SCALARS.get(kind)


SCALARS = {"string": "sample", "integer": 1, "number": 1.5, "boolean": True}
"""What stands for each scalar type; `null` for anything else."""
