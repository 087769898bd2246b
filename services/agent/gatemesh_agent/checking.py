"""Whether the answer to a probe is right, however it is phrased. Pure; code is read, never run."""

import ast
import re
from collections.abc import Mapping
from typing import Any

import orjson

from gatemesh_agent.gates.chain import GateChain
from gatemesh_agent.gates.context import context_of
from gatemesh_agent.gates.judgement import GATE_VERSION, Judgement
from gatemesh_agent.phrasing import answers_with, plain
from gatemesh_common.messages import CheckLevel, Outcome, Reason

FENCE = re.compile(r"```[\w+-]*\n?(.*?)(?:```|\Z)", re.DOTALL)
FLAGS = re.IGNORECASE | re.DOTALL
OPERATORS: Mapping[str, type[ast.operator]] = {
    "+": ast.Add,
    "-": ast.Sub,
    "*": ast.Mult,
    "%": ast.Mod,
}


def fits_pattern(answer: str, pattern: str) -> bool:
    """Return True when a pattern is found in the answer, as it is or without its marks of form."""
    return any(re.search(pattern, text, FLAGS) for text in (answer, plain(answer)))


def fits_number(answer: str, number: int) -> bool:
    """Return True when the answer is this number, in digits or in words."""
    return answers_with(answer, number)


def fits_copy(answer: str, wanted: str) -> bool:
    """Return True when the answer holds a text sign by sign, on its own."""
    return any(
        re.search(rf"(?<![\w-]){re.escape(wanted)}(?![\w-])", text)
        for text in (answer, plain(answer))
    )


def fits_json(answer: str, wanted: Mapping[str, Any]) -> bool:
    """Return True when the answer is a JSON object that has these fields."""
    found = _json_of(answer)
    return found is not None and all(
        name in found and _is_alike(found[name], value) for name, value in wanted.items()
    )


def fits_code(answer: str, arguments: int, operator: str) -> bool:
    """Return True when the answer is Python with a function of so many arguments that uses it."""
    tree = _tree_of(_code_of(answer))
    wanted = OPERATORS[operator]
    return tree is not None and any(
        len(node.args.args) == arguments and _uses(node, wanted)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.Lambda)
    )


def judge_probe(
    accept: str, request: dict[str, Any], text: str, finish_reason: str | None
) -> Judgement:
    """Judge an answer to a probe: what L1 holds against it, then whether the pattern is found.

    A pattern with its own flags keeps them; it is tried with and without marks of form.
    """
    chain = GateChain(context_of(request))
    chain.feed_text(text)
    faults = [found for found in chain.finish(finish_reason) if found.outcome is Outcome.FAILED]
    if faults:
        return faults[0]
    right = any(re.search(accept, one) for one in (text, plain(text)))
    return Judgement(
        CheckLevel.L5,
        Outcome.PASSED if right else Outcome.FAILED,
        Reason.CLEAN if right else Reason.PROBES_FAILED,
        score=float(right),
        threshold=1.0,
        gate_version=GATE_VERSION,
    )


def _json_of(answer: str) -> dict[str, Any] | None:
    fenced = [found[1] for found in FENCE.finditer(answer)]
    braced = answer[answer.find("{") : answer.rfind("}") + 1]
    for text in (answer, *fenced, braced):
        try:
            found = orjson.loads(text.strip())
        except orjson.JSONDecodeError:
            continue
        if isinstance(found, dict):
            return found
    return None


def _is_alike(found: Any, wanted: Any) -> bool:
    """Compare values; a number may be written as text, a text in any case; `*` takes anything."""
    if wanted in ("*", found):
        return True
    return plain(str(found)).casefold() == plain(str(wanted)).casefold()


def _code_of(answer: str) -> str:
    fenced = FENCE.search(answer)
    return fenced[1] if fenced else answer


def _tree_of(code: str) -> ast.Module | None:
    """Return the tree of the longest beginning that is Python: the end may be cut or be prose."""
    lines = code.splitlines()
    first = next(
        (at for at, line in enumerate(lines) if re.match(r"\s*(def |\w+ = lambda)", line)), 0
    )
    for end in range(len(lines), first, -1):
        try:
            return ast.parse("\n".join(lines[first:end]))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _uses(function: ast.AST, operator: type[ast.operator]) -> bool:
    return any(
        isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, operator)
        for node in ast.walk(function)
    )
