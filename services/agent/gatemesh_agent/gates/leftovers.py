"""What the server or a program around it left in an answer: events, errors, values, bytes."""

import re
from itertools import pairwise

import regex

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Finding
from gatemesh_agent.gates.sourcecode import reads_as_code
from gatemesh_agent.gates.topics import Topic
from gatemesh_agent.gates.window import CHECKPOINT, TextWindow
from gatemesh_common.messages import Reason

REACH = CHECKPOINT + 96
"""A look-back that finds a trace which a checkpoint cut."""
SESSION = 1024
PROMPT = ">>> "
"""Before it a session of an interpreter is shown, errors and all."""
LEADS = ('"object"', '"choices"', '"delta"', "Traceback (", "data: ", "event: ")
EVENT = regex.compile(
    r"""(?:^|\n|[.!?,;\w]\s*)data:\s?\{\s*"(?:id | object | choices | type | delta)"\s*:
    | "object"\s*:\s*"(?:chat\.completion | text_completion)
    | "choices"\s*:\s*\[\s*\{\s*"(?:delta | index | text)"
    | (?:^|\n)event:\ (?:message_ | content_block_ | response\.)\w+""",
    regex.VERBOSE,
)
"""One piece of a stream of answers, as it crosses the network."""
TRACE = regex.compile(r'Traceback \(most recent call last\):\s*\n\s*File "')
BODY = regex.compile(
    r"""\s*\{\s*"(?:error"\s*:\s*[{"] | object"\s*:\s*"error" | detail"\s*:\s*[\[{"])
    | \s*\{\s*"(?:role"\s*:\s*"assistant") | HTTP/[12](?:\.[01])?\ \d{3}[^\n]*\n[\w-]+:\ ?\S
    | \s*(?:<!DOCTYPE[^>]*>\s*)?<html[^>]*>\s*<head>\s*<title>\s*[45]\d\d\b
    | (?::\ ?(?:ping | keep-?alive)\b[^\n]*\s*)+$""",
    regex.VERBOSE | regex.IGNORECASE,
)
"""How an error, a message object, an error page or a bare connection begins."""
VALUE = regex.compile(r"\s*(?:(?:\[object\ Object\]|null|undefined|NaN|nan)[\s,;]*)+")
"""Nothing, as programs write it; `None` is also a word."""
BARE = frozenset({"null", "undefined", "nan"})
"""Values that also answer questions: one of division by zero, one of hypotheses."""
WISH = regex.compile(
    r"\bsuggest | \brecommend | \bbrainstorm | \bjokes?\b | \bstory\b | \bideas?\b",
    regex.VERBOSE | regex.IGNORECASE,
)
"""A prompt that no single value of a program answers."""
BYTES = regex.compile(
    r"""\s*b(['"])(?:[\x20-\x7e])*?(?:\\x[0-9a-f]{2}){3}(?:[\x20-\x7e])*\1\s*""", regex.DOTALL
)
IDS = re.compile(r"\[?[ ]*\d{1,6}(?:,?[ ]\d{1,6}){11,}[ ]*\]?")
"""Twelve and more numbers in one row and nothing else."""
ID_LENGTHS = 3
LONGEST_ROW = 4096
NUMERIC = regex.compile(
    r"""\d | \bpi\b | π | digit | decimal | factorial | power | root | prime | number | fibonacci
    | random | constant | \bbits?\b | sequence | series | \blist\b | lotter | \bids?\b | \bdata
    | zahl | ziffer | nombre | chiffre | décimal | número | dígito | numer | liczb | cyfr | sayı
    | rakam | число | числ | цифр | знак | номер | 数 | 位 | 小数 | 円周率 | 桁 | 숫자 | 자리 | 수열
    | رقم | أرقام | מספר | संख्या | ตัวเลข | angka | số""",
    regex.VERBOSE | regex.IGNORECASE,
)
"""A prompt that may want numbers and nothing else."""


def traces(window: TextWindow, context: RequestContext) -> Finding | None:
    """Find an event of the stream, or the traceback of a program, that nobody asked about."""
    text = window.last(REACH)
    if window.in_fence or not any(lead in text for lead in LEADS) or "`" in text:
        return None
    if PROMPT in window.last(SESSION):
        return None
    hit = EVENT.search(text) or (None if reads_as_code(window) else TRACE.search(text))
    if hit is None or context.demands_json or context.asks(Topic.PROGRAMS, Topic.ENCODED):
        return None
    start = window.end - len(text)
    return Finding(Reason.SPECIAL_TOKENS, 1.0, 0.0, start + hit.start(), start + hit.end())


def only_leftovers(text: str, context: RequestContext) -> Finding | None:
    """Find an answer that is nothing but a value, an error or undecoded tokens of a program."""
    if context.demands_json or len(text) > LONGEST_ROW:
        return None
    reason = leftover(text, context)
    if reason is None or context.asks(Topic.PROGRAMS, Topic.ENCODED, Topic.ENCODING, Topic.TOKENS):
        return None
    return Finding(reason, 1.0, 0.0, 0, len(text))


def leftover(text: str, context: RequestContext) -> Reason | None:
    """Return what an answer is in place of text, if it is none."""
    prompt = context.prompt
    if VALUE.fullmatch(text) is not None and is_no_answer(text, context):
        return Reason.EMPTY
    if BODY.match(text) is not None:
        return Reason.SPECIAL_TOKENS
    if BYTES.fullmatch(text) is not None or are_ids(text.strip(), prompt):
        return Reason.UNDECODED_TOKENS
    return None


def is_no_answer(text: str, context: RequestContext) -> bool:
    """Return True for values of which the prompt does not speak, a bare one only for a wish."""
    value, *rest = (part.strip(",;").lower() for part in text.split())
    if value in context.prompt:
        return False
    wished = WISH.search(context.prompt) is not None or context.asks(Topic.COMPOSING)
    return value not in BARE or bool(rest) or wished


def are_ids(text: str, prompt: str) -> bool:
    """Return True for unsorted numbers of different lengths where no prompt asks for numbers."""
    if IDS.fullmatch(text) is None or NUMERIC.search(prompt) is not None:
        return False
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    lengths = {len(str(number)) for number in numbers}
    ways = {later > earlier for earlier, later in pairwise(numbers)}
    return len(lengths) >= ID_LENGTHS and len(ways) > 1
