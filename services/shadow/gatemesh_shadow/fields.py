"""Compares JSON answers and tool calls field by field. Pure."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gatemesh_shadow.overlap import FENCE, normalised, shared, stems

FREE_TEXT_WORDS = 5
"""A string of so many words is prose: two healthy answers word it differently."""
FREE_TEXT_SHARE = 0.15
"""Share of its words that prose must have in common with the other one."""
FREE_KEYS = re.compile(
    r"reason|explanation|rationale|comment|description|summary|thought|note|message|detail",
    re.IGNORECASE,
)
"""Fields that hold prose, however short it is."""
MISSING = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that differs; says how, never what."""

    path: str
    kind: str
    """`missing`, `type`, `value` or `length`."""


def parsed(text: str) -> Any:
    """The JSON value that a text is, bare or in a code fence; None where it is none."""
    block = FENCE.search(text)
    for candidate in (text, block[1] if block else ""):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict | list) else None
    return None


def differences(first: Any, second: Any, path: str = "") -> list[Difference]:
    """The fields in which two values differ; order of keys and writing of numbers never count."""
    return list(_differences(first, second, path))


def _differences(first: Any, second: Any, path: str) -> Iterator[Difference]:
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for key in sorted({*first, *second}, key=str):
            yield from _field(first.get(key, MISSING), second.get(key, MISSING), f"{path}.{key}")
    elif isinstance(first, list) and isinstance(second, list):
        yield from _items(first, second, path)
    elif not _same(first, second, path):
        same_kind = type(first) is type(second) or (_is_number(first) and _is_number(second))
        yield Difference(path.lstrip("."), "value" if same_kind else "type")


def _field(first: Any, second: Any, path: str) -> Iterator[Difference]:
    if MISSING in (first, second):
        # A field left out and a field that says nothing mean the same.
        if (second if first is MISSING else first) not in (None, "", [], {}):
            yield Difference(path.lstrip("."), "missing")
        return
    yield from _differences(first, second, path)


def _items(first: list[Any], second: list[Any], path: str) -> Iterator[Difference]:
    if len(first) != len(second):
        yield Difference(path.lstrip("."), "length")
        return
    left = list(second)
    for place, item in enumerate(first):
        match = next((one for one in left if not differences(item, one, f"{path}[]")), MISSING)
        if match is MISSING:
            yield Difference(f"{path}[{place}]".lstrip("."), "value")
        else:
            left.remove(match)


def _same(first: Any, second: Any, path: str) -> bool:
    if isinstance(first, bool) or isinstance(second, bool):
        return bool(_truth(first) == _truth(second))
    if _is_number(first) and _is_number(second):
        return math.isclose(first, second, rel_tol=1e-9)
    if isinstance(first, str) and isinstance(second, str):
        return same_text(first, second, is_prose=bool(FREE_KEYS.search(path.rpartition(".")[2])))
    if {type(first), type(second)} <= {str, int, float}:
        return _number(first) is not None and _number(first) == _number(second)
    return bool(first == second)


def same_text(first: str, second: str, *, is_prose: bool = False) -> bool:
    """True for two strings that mean the same as the value of a field."""
    one, other = normalised(first), normalised(second)
    if one == other:
        return True
    is_prose = is_prose or min(len(one.split()), len(other.split())) >= FREE_TEXT_WORDS
    if not is_prose:
        return False
    words = stems(first), stems(second)
    return max(shared(words[0], words[1]), shared(words[1], words[0])) >= FREE_TEXT_SHARE


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> float | None:
    try:
        return float(str(value).replace(",", ""))
    except ValueError:
        return None


def _truth(value: Any) -> Any:
    return {"true": True, "false": False}.get(str(value).casefold(), value)


def call_differences(
    first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]], *, names_only: bool
) -> list[Difference]:
    """The same for tool calls: their names, and unless told otherwise their arguments."""
    if names_only:
        return differences(sorted(map(_name, first)), sorted(map(_name, second)), "tool_calls")
    return differences([_call(one) for one in first], [_call(one) for one in second], "tool_calls")


def _name(call: Mapping[str, Any]) -> str:
    return str((call.get("function") or call).get("name", ""))


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function") or call
    arguments = function.get("arguments", {})
    if isinstance(arguments, str):
        arguments = parsed(arguments) if arguments.strip() else {}
    return {"name": _name(call), "arguments": arguments}
